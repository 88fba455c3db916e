"""The imports of the fork server of `workers` before it forks: they cost time once, for any number of processes."""

import atexit
import os
import signal

from anon_pipeline.imports import keep_imports, large_imports

if signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()):  # in the fork server: see `workers`
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    keep_imports()  # so that a fork does not copy memory by collecting it
    # Libraries that are taken down one after the other complain of each other on the user's terminal.
    atexit.register(os._exit, 0)

with large_imports():
    import pandas as pd
    from sklearn import compose, ensemble, model_selection, pipeline

__all__ = ["compose", "ensemble", "model_selection", "pd", "pipeline"]
