"""How many examples a property is tried with: a fixed number in every run, many times as many when exploring."""

import os

#: How many times its usual examples a property gets: a hundred in `make explore`, a share of one in `.ci/run`.
FACTOR = float(os.environ.get("ANON_PIPELINE_EXAMPLES", "1"))


def times(examples: int) -> int:
    """The number of examples for a property that is usually tried with `examples`; at least one."""
    return max(1, round(examples * FACTOR))
