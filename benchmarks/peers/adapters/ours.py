"""Ours as a library. Options: the spread, and the number of cells up to which classes are refined; else the default."""

import sklearn.tree  # noqa: F401 (imported when the first tree is fitted; other tools' imports are not counted either)
from protocol import GUIDANCE, QUASI_IDENTIFIERS, Run

from anon_pipeline import AnonymizerTree

run = Run()
spread, *refine = run.options
settings = {"spread": float(spread)} | ({"refine": int(refine[0])} if refine else {})
people, guidance = run.people[QUASI_IDENTIFIERS], run.people[GUIDANCE].to_numpy()
with run.measured():
    tree = AnonymizerTree(k=run.k, **settings)
    released = tree.fit_transform(people, guidance)
run.write(released, classes=tree.apply(people))
