"""project-lighthouse-anonymize: Core Mondrian in one process, with its default of a flat tree per category.

A small call before the measured one makes numba compile its functions, so that compiling counts like importing.
"""

import logging

import pandas as pd
from project_lighthouse_anonymize.wrappers.k_anonymize import k_anonymize
from protocol import NUMERIC, QUASI_IDENTIFIERS, Run

if __name__ == "__main__":
    run = Run()
    people = run.people[QUASI_IDENTIFIERS].assign(row=range(len(run.people)))
    logger = logging.getLogger("lighthouse")
    logger.setLevel(logging.ERROR)

    def anonymized(people):
        return k_anonymize(logger, people, QUASI_IDENTIFIERS, run.k, {}, "row", parallelism=None)[0]

    anonymized(people.head(10 * run.k).copy())
    with run.measured():
        released = anonymized(people)
    numbers = {name: pd.to_numeric(released[name]) for name in NUMERIC}
    run.write(released.assign(**numbers), released["row"])
