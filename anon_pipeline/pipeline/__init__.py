"""The only package that uses Dagster, Great Expectations and MLflow; the layers below do not import them."""
