"""Great Expectations, imported without what a question over a small table of aggregates needs none of."""

from anon_pipeline.imports import LATER, large_imports

# pyspark is an extra that costs a second of imports, and altair draws pages, which nobody sees here.
with large_imports(absent=["pyspark"], later=[*LATER, "altair"]):
    import great_expectations as gx
    import great_expectations.expectations as gxe
    from great_expectations.data_context.types.base import ProgressBarsConfig
    from great_expectations.expectations.registry import get_expectation_impl

__all__ = ["ProgressBarsConfig", "get_expectation_impl", "gx", "gxe"]
