"""The check that a candidate shows no value that too few people share; its tables are read again and compared."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from anon_pipeline.anonymize.description import described, hierarchies_of, levels_of
from anon_pipeline.anonymize.recode import SUPPRESSED, narrowed
from anon_pipeline.attack.generalized_values import numbers, read_interval
from anon_pipeline.engine.base import Engine
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.privacy.named_values import unshared_categories, unshared_numbers, unshared_texts
from anon_pipeline.release.publish import CLASSES, DATA
from anon_pipeline.spec import ColumnType, ReleaseSpec
from anon_pipeline.tables import Domain

Texts = list[str | None]


def unshared_values(
    spec: ReleaseSpec, engine: Engine, types: Mapping[str, ColumnType], raw: Stage, candidate: Stage
) -> pd.DataFrame:
    """The number of values in the tables of a candidate that fewer than k people share, per quasi-identifier.

    The people per value are counted in the stored table that was grouped, in which nobody is who was withheld before.
    Every value of the released table must be in the class table.
    """
    classes = pd.read_parquet(candidate.folder / CLASSES)
    left_out = int(candidate.facts["suppressed"]) + int(candidate.facts["waiting"]) - raw.facts.get("withheld", 0)
    levels, hierarchies = levels_of(spec), hierarchies_of(spec)
    unshared = {}
    for name in spec.quasi_identifiers:
        people = engine.domains(raw.folder / DATA, {name: types[name]})
        of = ({name: levels[name]} if name in levels else {}, {name: hierarchies[name]} if name in hierarchies else {})
        (domain,) = described(people, *of)
        if not domain.ordered and name in candidate.facts["narrowed"]:  # 1 is 1.0 in another text
            domain = narrowed(domain, candidate.facts["narrowed"][name])
        texts = _texts(engine, candidate, classes, name) if spec.recode.form == "range" or not domain.ordered else []
        if domain.ordered:
            values = unshared_numbers(domain, classes, spec.k, left_out)
        else:
            values = unshared_categories(domain, _categories(classes, name), spec.k)
        if domain.nodes is not None:
            values += unshared_texts(domain, classes[f"{name}_label"], spec.k)
        if spec.recode.form == "value":
            values += _unknown_numbers(engine, candidate, domain, classes) if domain.ordered else 0
            values += 0 if domain.ordered else unshared_categories(domain, texts, spec.k)
        elif domain.nodes is not None or domain.levels is not None:
            values += unshared_texts(domain, [text for text in texts if text is not None], spec.k)
        elif domain.ordered:
            values += _unknown_ends(texts, classes, name)
        else:
            sets = {_set(list(names)) for names in classes[f"{name}_values"]}
            values += len({text for text in texts if text is not None} - sets)
        unshared[name] = values
    return pd.DataFrame({"column": list(unshared), "values": list(unshared.values())})


def _texts(engine: Engine, candidate: Stage, classes: pd.DataFrame, name: str) -> Texts:
    """The different texts of a column of the released table.

    Where numbers are categories, the table has no text for what is withheld: its value is missing then.
    """
    (written,) = engine.domains(candidate.folder / DATA, {name: ColumnType.CATEGORICAL})
    texts = list(map(str, written.values))
    withheld = written.storage != "VARCHAR" and SUPPRESSED in set(classes[name])
    return [*texts, *([None] if written.counts[0] and not withheld else [])]


def _categories(classes: pd.DataFrame, name: str) -> Iterable[str | None]:
    return {value for names in classes[f"{name}_values"] for value in names} | {
        None if value is None or value != value else str(value) for value in classes[name]
    }


def _unknown_numbers(engine: Engine, candidate: Stage, domain: Domain, classes: pd.DataFrame) -> int:
    """The number of numbers in the released table that are in no class."""
    (written,) = engine.domains(candidate.folder / DATA, {domain.name: domain.type})
    shown = numbers(pd.Series(written.readable(written.values)))
    # The nearest number of a class is one of the two beside it; with infinity there are always two.
    known = np.r_[-np.inf, np.unique(numbers(classes[domain.name])), np.inf]
    known = known[~np.isnan(known)]
    above = np.clip(np.searchsorted(known, shown), 1, len(known) - 1)
    apart = np.minimum(np.abs(shown - known[above - 1]), np.abs(known[above] - shown))
    return int((~(apart <= 1e-6 * np.maximum(1, np.abs(shown)))).sum())


def _unknown_ends(texts: Texts, classes: pd.DataFrame, name: str) -> int:
    """The number of ends of ranges that are in no row of the class table."""
    known = {end for side in ("low", "high") for end in numbers(classes[f"{name}_{side}"]).tolist()}
    unknown = 0
    for text in texts:
        read = None if text is None else read_interval(text)
        if text is not None and read is None:
            unknown += 1
        elif read is not None:
            unknown += sum(np.isfinite(end) and end not in known for end in (read.low, read.high))
    return unknown


def _set(names: Texts) -> str:
    """A set of categories, written like a range."""
    words = ["missing" if name is None else name for name in names]
    return words[0] if len(words) == 1 else "{" + ", ".join(words) + "}"
