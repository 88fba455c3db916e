"""A home that was moved or copied: MLflow's database holds whole paths, which must be those of the home it lies in.

Else a copied home would write its files, fitted guides among them, into the home that it was copied from.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

#: Every place of MLflow's schema that names a file.
PLACES = (
    ("experiments", "artifact_location"),
    ("runs", "artifact_uri"),
    ("logged_models", "artifact_location"),
    ("model_versions", "source"),
    ("model_versions", "storage_location"),
)
FOLDER = "/private/mlflow/artifacts"


def settle(database: Path) -> None:
    """Let an SQLite database of MLflow's name files in its own home, each dataset's in a folder of its own."""
    here = (database.parent / "artifacts").as_uri()
    with closing(sqlite3.connect(database)) as connection, connection:
        stated = connection.execute("SELECT artifact_location FROM experiments").fetchall()
        roots = {location.partition(FOLDER)[0] + FOLDER for (location,) in stated if location and FOLDER in location}
        for root in roots - {here}:
            for table, column in PLACES:
                connection.execute(
                    f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE substr({column}, 1, ?) = ?",
                    (here, len(root) + 1, len(root), root),
                )
        shared = (
            "UPDATE experiments SET artifact_location = artifact_location || '/' || name WHERE artifact_location = ?"
        )
        connection.execute(shared, (here,))
