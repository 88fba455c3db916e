"""Great Expectations: the questions of each stage, what was found, and its pages."""
