"""The imports of the fork server of `workers` before it forks: they cost time once, for any number of processes."""

import gc
import signal

from anon_pipeline.imports import large_imports

if signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()):  # in the fork server: see `workers`
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

with large_imports():
    import pandas as pd
    from sklearn import compose, ensemble, model_selection, pipeline

__all__ = ["compose", "ensemble", "model_selection", "pd", "pipeline"]

gc.freeze()  # so that a fork does not copy memory by collecting it
