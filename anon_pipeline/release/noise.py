"""The noise of published figures that are counted from the source.

A figure that is only rounded tells for certain which values cannot be: those with which it would be rounded otherwise.
Where the figure lies near the end of a step this is nearly every value, and of many figures some always do. With noise
every value remains possible, and one is hardly likelier than another.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace

from anon_pipeline.keys import Key

#: The scale of each of the two draws, in steps; a figure is off by .7 of a step in the root mean square. One person
#: moves most figures by a small part of a step.
SCALE = 0.35


@dataclass(frozen=True)
class Noise:
    """Laplace noise (C. Dwork et al., TCC 2006), drawn under the private key, before a figure is rounded to its step.

    Two draws are added, as in RAPPOR (U. Erlingsson et al., CCS 2014). One follows from the name of the figure, and is
    the same in all releases of the dataset: the mean of many releases still has it. The other follows from the release,
    too: without it, the figures of two releases would tell exactly by how much they differ. Neither follows from the
    figure's value, or two releases would tell whether a figure is exactly the same. Both follow from the step: where
    people come and go, a figure is told now in one step and now in another, and one draw in two sizes could be solved
    for.

    Attributes
    ----------
    key, dataset : the private key of the dataset, None where nothing is drawn, and its name
    version : the release
    figure : the name of the figure, or of the group of figures
    scale : that of each draw, in steps
    """

    key: Key | None
    dataset: str
    version: str
    figure: tuple[str, ...] = ()
    scale: float = SCALE

    def of(self, *names: str) -> Noise:
        """The noise of a figure, or of a group of figures, of this group."""
        return replace(self, figure=(*self.figure, *names))

    def at_most(self, scale: float) -> Noise:
        """The same, with a smaller scale."""
        return replace(self, scale=min(scale, self.scale))

    def steps(self, value: float, step: float) -> int:
        """A figure with noise, as a number of steps."""
        return round(value / step + self.scale * (self._drawn(step) + self._drawn(step, self.version)))

    def _drawn(self, step: float, *release: str) -> float:
        """A draw of the Laplace distribution of scale 1, for all releases or for one; 0 without a key."""
        if self.key is None:
            return 0.0
        named = json.dumps([self.dataset, self.figure, float(step), *release])
        drawn = int.from_bytes(self.key.derived("figures", named, 16), "big")
        size = -math.log(((drawn >> 64) + 1) / 2**64)
        return size if drawn & 1 else -size


#: That of figures that others can count again, or that are drawn themselves.
NO_NOISE = Noise(None, "", "", scale=0.0)
