"""anonypyx: Mondrian with human-readable ranges and sets."""

from anonypyx import Anonymiser
from protocol import CATEGORICAL, QUASI_IDENTIFIERS, TARGET, Run, by_partition, listening

run = Run()
people = run.people[[*QUASI_IDENTIFIERS, TARGET]].astype(dict.fromkeys(CATEGORICAL, "category"))
heard = []
with run.measured():
    anonymiser = Anonymiser(
        people,
        k=run.k,
        algorithm="Mondrian",
        feature_columns=QUASI_IDENTIFIERS,
        sensitive_column=TARGET,
        generalisation_strategy="human-readable",
    )
    anonymiser.algorithm.partition = listening(anonymiser.algorithm.partition, heard)
    released = anonymiser.anonymise()
run.write(*by_partition(heard[0], released, released["count"]))
