"""The steps of a run, a file each: a function that makes the step's result, and the step's declaration."""
