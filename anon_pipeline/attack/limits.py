"""What a bound on attacks is compared with: the largest leak among the findings that the bound is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anon_pipeline.attack.rates import TOO_WEAK

#: The criteria that a bound of this name limits.
CRITERIA = {"linkage": "linkability", "singling_out": "singling_out"}
#: Prefix of the name of a bound on inference, followed by the column.
OF_INFERENCE = "attribute_inference_"


def limits_leaks(bound: str) -> bool:
    """Whether the bound of this name limits leaks, and not an area under a curve or what a replay tells."""
    return bound in CRITERIA or bound.startswith(OF_INFERENCE)


def largest_leak(findings: Sequence[Mapping[str, Any]], bound: str, upper: bool) -> float | None:
    """The largest leak that the bound of this name limits; None if nothing was measured.

    Parameters
    ----------
    findings : plain data, as of `Finding.to_json`
    bound : a name for which `limits_leaks` holds
    upper : take the upper ends of the 95 % intervals, else the estimates
    """
    return max((_leak(finding, upper) for finding in findings if _is_limited(finding, bound)), default=None)


def _is_limited(finding: Mapping[str, Any], bound: str) -> bool:
    if finding["leak"] is None:
        return False
    if bound in CRITERIA:
        return bool(finding["criterion"] == CRITERIA[bound])
    column = bound.removeprefix(OF_INFERENCE)
    return finding["name"] in (f"inference: {column}", f"inference across groups: {column}")


def _leak(finding: Mapping[str, Any], upper: bool) -> float:
    if upper:
        return float(finding["leak"]["high"])
    return 0.0 if finding["verdict"] == TOO_WEAK else float(finding["leak"]["leak"])
