"""Corrects the absolute paths that MLflow has stored, after a home was moved or restored from a copy.

Otherwise a copied home would write its files, such as fitted guides, into the home that it was copied from.
"""

from pathlib import Path

import sqlalchemy as sql
from sqlalchemy.pool import NullPool

#: Columns of MLflow's database that hold paths of files, by table.
PLACES = {
    "experiments": ("artifact_location",),
    "runs": ("artifact_uri",),
    "logged_models": ("artifact_location",),
    "model_versions": ("source", "storage_location"),
}


def follow_moved_home(uri: str, artifacts: Path) -> None:
    """Change paths into the artifacts of another home to paths into those of this one, in one folder per dataset.

    Parameters
    ----------
    uri : the address of an MLflow store whose tables exist
    artifacts : the folder of this home
    """
    here, ending = artifacts.as_uri(), f"/{'/'.join(artifacts.parts[-3:])}"
    engine = sql.create_engine(uri, poolclass=NullPool)
    with engine.begin() as connection:
        experiments = sql.table("experiments", sql.column("artifact_location"), sql.column("name"))
        known = connection.scalars(sql.select(experiments.c.artifact_location)).all()
        before = {place[: place.index(ending)] + ending for place in known if place and ending in place} - {here}
        for former in before:
            for table, columns in PLACES.items():
                for name in columns:
                    place: sql.ColumnClause[str] = sql.column(name)
                    within = sql.or_(place == former, place.startswith(f"{former}/", autoescape=True))
                    change = {name: sql.literal(here) + sql.func.substr(place, len(former) + 1)}
                    connection.execute(sql.update(sql.table(table, place)).where(within).values(change))
        own = experiments.c.artifact_location + "/" + experiments.c.name
        shared = experiments.c.artifact_location == here
        connection.execute(sql.update(experiments).where(shared).values(artifact_location=own))
