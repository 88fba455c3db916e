"""Ours as a library. Options: the spread, and the number of cells up to which classes are refined after the tree."""

import sklearn.tree  # noqa: F401 (imported when the first tree is fitted; other tools' imports are not counted either)
from protocol import GUIDANCE, QUASI_IDENTIFIERS, Run

from anon_pipeline import AnonymizerTree

run = Run()
spread, refine = float(run.options[0]), int(run.options[1])
people, guidance = run.people[QUASI_IDENTIFIERS], run.people[GUIDANCE].to_numpy()
with run.measured():
    tree = AnonymizerTree(k=run.k, spread=spread, refine=refine)
    released = tree.fit_transform(people, guidance)
run.write(released, classes=tree.apply(people))
