"""Technical names for names that people chose, which Dagster and MLflow accept.

A column may have any name. Dagster accepts ASCII letters, digits and `_` in the name of a check, and MLflow little more
in that of a metric. Texts for people keep the original name.
"""

import hashlib
import re

#: Dagster's and MLflow's limits are above this.
LONGEST = 200
TAKEN = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
#: The ending of a translated name. A name that looks translated is translated, too, so that no two become the same.
TRANSLATED = re.compile(r".*_x[0-9a-f]{12}", re.DOTALL)
#: The label of the owner on a job's page; `owners` of jobs, schedules and sensors are beta in Dagster 1.13.
OWNER = "owner"
EMAIL = re.compile(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}\b")  # Dagster's own pattern


def technical(name: str) -> str:
    """A name of ASCII letters, digits and `_`: the name itself if possible, otherwise with its hash at the end.

    The same name gives the same result in every run, and different names give different results.

    >>> technical("l_diversity_income"), technical("l_diversity_blood type")
    ('l_diversity_income', 'l_diversity_blood_type_xd3e9b040a6d2')
    """
    if TAKEN.fullmatch(name) and len(name) <= LONGEST and not TRANSLATED.fullmatch(name):
        return name
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)[:LONGEST]
    return f"{plain}_x{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def owners(stated: str | None) -> list[str]:
    """The owners of an asset: an e-mail address unchanged, any other owner as a team of Dagster, by name."""
    if stated is None or not stated.strip():
        return ["team:data-stewards"]
    named = stated.strip()
    return [named if EMAIL.fullmatch(named) or named.removeprefix("team:") not in ("", named) else f"team:{named}"]
