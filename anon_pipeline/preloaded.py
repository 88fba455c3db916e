"""What the fork server of `workers` imports before it forks: it is paid once, however many processes there are."""

import gc

from anon_pipeline.imports import large_imports

with large_imports():
    import pandas as pd
    from sklearn import compose, ensemble, model_selection, pipeline

__all__ = ["compose", "ensemble", "model_selection", "pd", "pipeline"]

gc.freeze()  # what a fork never collects, it never copies either
