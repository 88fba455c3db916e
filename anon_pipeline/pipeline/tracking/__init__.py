"""MLflow: runs and their figures, models and their versions, and the store that holds them."""
