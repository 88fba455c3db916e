"""The last that the tests' fork server imports: what stands then is never collected in a fork, and so never copied.

Nor is what a fork makes itself: a seventh of a small run was spent looking for garbage.
"""

import gc

from sqlalchemy.orm import configure_mappers

configure_mappers()  # of MLflow's tables, which each process else does for itself
gc.freeze()
gc.disable()
