"""What every process of the tests begins with."""

import os

# Several tests run at once: a thread of OpenMP that spins while it waits takes a core from one that works.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
