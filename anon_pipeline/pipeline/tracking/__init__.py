"""MLflow: runs and their figures, models and their versions, and the store for both."""
