"""Where MLflow looks for the files of a home that was moved, or restored from a copy: MLflow writes absolute paths.

Else a copied home would write its files, fitted guides among them, into the home that it was copied from.
"""

from pathlib import Path

import sqlalchemy as sql
from sqlalchemy.pool import NullPool

#: Columns of MLflow's database that name a place of files, by table.
PLACES = {
    "experiments": ("artifact_location",),
    "runs": ("artifact_uri",),
    "logged_models": ("artifact_location",),
    "model_versions": ("source", "storage_location"),
}


def follow_moved_home(uri: str, artifacts: Path) -> None:
    """Let paths into the artifacts of another home lead into those of this one, each dataset's in a folder of its own.

    Parameters
    ----------
    uri : of a store of MLflow's, with its tables
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
