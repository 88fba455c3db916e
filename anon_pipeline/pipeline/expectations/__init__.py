"""Great Expectations: the questions of each stage, their results, and its pages."""
