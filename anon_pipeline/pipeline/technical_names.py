"""Names of people's choosing, as Dagster and MLflow take them.

A column may be called anything. Dagster takes ASCII letters, digits and `_` as the name of a check, and MLflow little
more as that of a metric; what a person reads keeps the name as it is.
"""

import hashlib
import re

#: Dagster's and MLflow's limits are above this.
LONGEST = 200
TAKEN = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
#: What a translated name ends in. A name that looks like one is translated itself, so that no two become one.
TRANSLATED = re.compile(r".*_x[0-9a-f]{12}", re.DOTALL)
#: Under which a job's page says who answers for it; `owners` of jobs, schedules and sensors are beta in Dagster 1.13.
OWNER = "owner"
EMAIL = re.compile(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}\b")  # as Dagster has it


def technical(name: str) -> str:
    """A name of ASCII letters, digits and `_`: the name itself where it is such, else with a hash of it at its end.

    The same name gives the same in every run, and different names different ones.

    >>> technical("l_diversity_income"), technical("l_diversity_blood type")
    ('l_diversity_income', 'l_diversity_blood_type_xd3e9b040a6d2')
    """
    if TAKEN.fullmatch(name) and len(name) <= LONGEST and not TRANSLATED.fullmatch(name):
        return name
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)[:LONGEST]
    return f"{plain}_x{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def owners(stated: str | None) -> list[str]:
    """Who answers for an asset: an e-mail address as it is, everybody else as Dagster shows a team, by their name."""
    if stated is None or not stated.strip():
        return ["team:data-stewards"]
    named = stated.strip()
    return [named if EMAIL.fullmatch(named) or named.removeprefix("team:") not in ("", named) else f"team:{named}"]
