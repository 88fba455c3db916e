"""The scores of models trained on releases: data sets x methods x k, on raw test rows."""
