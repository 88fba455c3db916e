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

#: The scale of the noise, in steps. One person moves most figures by a small part of a step.
SCALE = 0.5


@dataclass(frozen=True)
class Noise:
    """Laplace noise (C. Dwork et al., TCC 2006), drawn under the private key, before a figure is rounded to its step.

    The draw follows from the release and the name of the figure, not from its value. Noise that followed from the value
    would tell of two releases whether a figure is exactly the same; noise that was the same in two releases would leave
    with them once one is subtracted from the other.

    Attributes
    ----------
    key, dataset : the private key of the dataset, None where nothing is drawn, and its name
    version : the release
    figure : the name of the figure, or of the group of figures
    scale : in steps
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
        return round(value / step + self.scale * self._drawn())

    def _drawn(self) -> float:
        """A draw of the Laplace distribution of scale 1; 0 without a key."""
        if self.key is None:
            return 0.0
        named = json.dumps([self.dataset, self.version, *self.figure])
        drawn = int.from_bytes(self.key.derived("figures", named, 16), "big")
        size = -math.log(((drawn >> 64) + 1) / 2**64)
        return size if drawn & 1 else -size


#: That of figures that others can count again, or that are drawn themselves.
NO_NOISE = Noise(None, "", "", scale=0.0)
