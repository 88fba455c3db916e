"""anonypy: Mondrian with ranges and sets as texts."""

import pandas as pd
from anonypy import Preserver
from protocol import CATEGORICAL, QUASI_IDENTIFIERS, TARGET, Run, by_partition, listening

run = Run()
people = run.people[[*QUASI_IDENTIFIERS, TARGET]].astype(dict.fromkeys(CATEGORICAL, "category"))
heard = []
with run.measured():
    preserver = Preserver(people, QUASI_IDENTIFIERS, TARGET)
    preserver.modrian.partition = listening(preserver.modrian.partition, heard)
    released = pd.DataFrame(preserver.anonymize_k_anonymity(run.k))
released[QUASI_IDENTIFIERS] = released[QUASI_IDENTIFIERS].map(lambda shown: shown[0])
run.write(*by_partition(heard[0], released, released["count"]))
