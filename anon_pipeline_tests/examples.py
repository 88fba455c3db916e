"""How many examples a property is tried with: a fixed number in every run, many times as many when exploring."""

import os

#: `make explore` sets it: every property is tried with so many times its examples.
FACTOR = int(os.environ.get("ANON_PIPELINE_EXAMPLES", "1"))


def times(examples: int) -> int:
    """The number of examples for a property that is usually tried with `examples`."""
    return examples * FACTOR
