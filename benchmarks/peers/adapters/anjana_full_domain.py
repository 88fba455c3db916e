"""anjana: full-domain generalization along hierarchies, all of a column to the same level, with suppression.

The hierarchies are the usual ones for Adult: age in steps of 5, 10 and 20 years,
categories in the groups below, and `*` at the top.
"""

import pandas as pd
from anjana.anonymity import k_anonymity
from protocol import CATEGORICAL, QUASI_IDENTIFIERS, Run

SUPPRESSED_PERCENT = 5
STEPS = (5, 10, 20)
GROUPS = {
    "workclass": {
        "private": ["Private"],
        "self-employed": ["Self-emp-inc", "Self-emp-not-inc"],
        "government": ["Federal-gov", "Local-gov", "State-gov"],
        "unpaid": ["Never-worked", "Without-pay"],
    },
    "education": {
        "below high school": ["Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th"],
        "high school": ["HS-grad", "Some-college"],
        "professional": ["Assoc-acdm", "Assoc-voc", "Prof-school"],
        "university": ["Bachelors", "Masters", "Doctorate"],
    },
    "marital_status": {
        "married": ["Married-AF-spouse", "Married-civ-spouse"],
        "not married": ["Divorced", "Married-spouse-absent", "Never-married", "Separated", "Widowed"],
    },
    "occupation": {
        "office": ["Adm-clerical", "Exec-managerial", "Prof-specialty", "Sales", "Tech-support"],
        "service": ["Armed-Forces", "Other-service", "Priv-house-serv", "Protective-serv"],
        "manual": ["Craft-repair", "Farming-fishing", "Handlers-cleaners", "Machine-op-inspct", "Transport-moving"],
    },
    "relationship": {
        "family": ["Husband", "Other-relative", "Own-child", "Wife"],
        "no family": ["Not-in-family", "Unmarried"],
    },
    "race": {"white": ["White"], "other": ["Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other"]},
    "native_country": {"United States": ["United-States"]},  # everyone else is from elsewhere
}


def hierarchy(name, values):
    if name in CATEGORICAL:
        group = {value: label for label, members in GROUPS.get(name, {}).items() for value in members}
        levels = [values, [group.get(value, "elsewhere") for value in values]] if group else [values]
    else:
        levels = [values, *([f"[{v // step * step}, {v // step * step + step})" for v in values] for step in STEPS)]
    levels.append(["*"] * len(values))
    return {level: pd.Series(shown) for level, shown in enumerate(levels)}


run = Run()
people = run.people[QUASI_IDENTIFIERS]
hierarchies = {name: hierarchy(name, sorted(people[name].unique())) for name in QUASI_IDENTIFIERS}
with run.measured():
    released = k_anonymity(people, [], QUASI_IDENTIFIERS, run.k, SUPPRESSED_PERCENT, hierarchies)
rows = released.get("index", released.index)
run.write(released.astype(str), rows)
