"""Great Expectations, imported without the libraries that questions about a small table of aggregates do not need."""

from anon_pipeline.imports import LATER, large_imports

# pyspark is an extra that costs a second of imports, and altair draws pages, which are not made here.
with large_imports(absent=["pyspark"], later=[*LATER, "altair"]):
    import great_expectations as gx
    import great_expectations.expectations as gxe
    from great_expectations.data_context.types.base import ProgressBarsConfig
    from great_expectations.expectations.registry import get_expectation_impl

__all__ = ["ProgressBarsConfig", "get_expectation_impl", "gx", "gxe"]
