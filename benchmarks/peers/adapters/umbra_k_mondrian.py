"""umbra-k: Mondrian as a scikit-learn transformer, with ranges and sets as texts."""

from protocol import QUASI_IDENTIFIERS, Run
from umbra_k import MondrianAnonymizer

run = Run()
people = run.people[QUASI_IDENTIFIERS]
with run.measured():
    released = MondrianAnonymizer(k=run.k, quasi_id=QUASI_IDENTIFIERS).fit_transform(people)
run.write(released)
