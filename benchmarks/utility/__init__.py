"""What releases are worth to models trained on them: data sets x methods x k, on raw test rows."""
