"""The table technique that releases a part of the people."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from anon_pipeline.masking.base import Applied, Columns, Context, TableTechnique
from anon_pipeline.masking.grouping import groups_of


class Sample(TableTechnique):
    """A random part of the people is kept, of each stratum in proportion.

    W. Cochran: Sampling Techniques, Wiley 1977, chapters 2 and 5; as a protection, C. Skinner et al.: Disclosure
    control for census microdata, Journal of Official Statistics 10(1), 1994. The number kept is the share of all,
    rounded; what rounding leaves over goes to the strata with the largest remainders. None of this is drawn, so that a
    spec may not take strata from a sensitive column.
    """

    technique: Literal["sample"] = "sample"
    columns: tuple[str, ...] = Field(default=(), description="the columns whose values are the strata, if any")
    share: float = Field(gt=0, lt=1, description="the part of the people that is kept")

    meaning: ClassVar[str] = "keeps a random part of the people, by strata if wanted"
    use_when: ClassVar[str] = (
        "nobody must be sure that a person is in the table; state the share that is left as sampling_fraction"
    )
    random: ClassVar[bool] = True

    @property
    def strata(self) -> tuple[str, ...]:
        return self.columns

    @property
    def kept_share(self) -> float:
        return self.share

    def apply(self, columns: Columns, context: Context) -> Applied:
        n = context.rows
        strata = groups_of([columns[name] for name in self.columns]) if self.columns else np.zeros(n, dtype=np.int64)
        sizes = np.bincount(strata)
        exact = sizes * self.share
        wanted = np.floor(exact).astype(np.int64)
        left = int(np.rint(n * self.share)) - int(wanted.sum())
        wanted[np.argsort(-(exact - wanted), kind="stable")[: max(left, 0)]] += 1
        order = np.lexsort((context.draws.uniform(), strata))
        first = np.cumsum(sizes) - sizes
        within = np.arange(n) - np.repeat(first, sizes)
        kept = np.sort(order[within < np.repeat(wanted, sizes)]).astype(np.int64)
        return Applied({}, kept=kept, facts={"rows_kept": len(kept), "strata": len(sizes)})
