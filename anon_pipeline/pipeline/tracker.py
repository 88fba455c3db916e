"""MLflow's client and its SQLite store, imported without what a metric needs none of."""

from anon_pipeline.imports import large_imports

with large_imports(absent=["pyspark"]):  # an extra, and a second of imports
    import mlflow
    from mlflow import MlflowClient
    from mlflow.entities import Metric, RunTag
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore  # a client imports it when it is first asked

__all__ = ["Metric", "MlflowClient", "RunTag", "SqlAlchemyStore", "mlflow"]
