"""Where Dagster, Great Expectations and MLflow live, and nowhere else: the layers below do not know them."""
