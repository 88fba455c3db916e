"""Ours as a library: option, the spread."""

from protocol import GUIDANCE, QUASI_IDENTIFIERS, Run

from anon_pipeline import AnonymizerTree

run = Run()
spread = float(run.options[0])
people, guidance = run.people[QUASI_IDENTIFIERS], run.people[GUIDANCE].to_numpy()
with run.measured():
    tree = AnonymizerTree(k=run.k, spread=spread).fit(people, guidance)
    released = tree.transform(people)
run.write(released, classes=tree.apply(people))
