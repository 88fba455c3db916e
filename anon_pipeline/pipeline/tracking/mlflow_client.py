"""MLflow's client and its SQLite store, imported without the libraries that metrics do not need."""

from anon_pipeline.imports import large_imports

with large_imports(absent=["pyspark", "polars"]):  # neither is asked for, and together they cost a second
    import mlflow
    from mlflow import MlflowClient
    from mlflow.entities import Dataset, DatasetInput, InputTag, LoggedModelOutput, Metric, Param, RunTag
    from mlflow.exceptions import MlflowException
    from mlflow.models.signature import ModelSignature
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore  # a client would import it at its first call
    from mlflow.types.schema import ColSpec, Schema

__all__ = [
    "ColSpec",
    "Dataset",
    "DatasetInput",
    "InputTag",
    "LoggedModelOutput",
    "Metric",
    "MlflowClient",
    "MlflowException",
    "ModelSignature",
    "Param",
    "RunTag",
    "Schema",
    "SqlAlchemyStore",
    "mlflow",
]
