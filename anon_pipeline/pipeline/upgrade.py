"""Brings Dagster's and MLflow's records to the installed schemas: `python -m anon_pipeline.pipeline.upgrade`.

Their own commands do the same, but MLflow's command takes the address with the password as an argument.
"""

import sys

import sqlalchemy as sql
from alembic.util.exc import CommandError
from sqlalchemy.pool import NullPool

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, fault_of_records, out_of_space
from anon_pipeline.pipeline.instance import open_instance
from anon_pipeline.pipeline.runtime import BAD_INPUT
from anon_pipeline.pipeline.tracking.runs import OTHER_SCHEMA, Tracking


def upgrade(home: Home) -> None:
    """Upgrade records with older schemas only. No other process may have the records open.

    Raises
    ------
    InputError
        If a database cannot be reached.
    """
    from mlflow.store.db.utils import _upgrade_db

    with open_instance(home) as instance:
        instance.upgrade()
        instance.reindex()
    engine = sql.create_engine(Tracking(home).uri, poolclass=NullPool)
    if sql.inspect(engine).has_table("experiments"):  # otherwise the first run makes it
        _upgrade_db(engine)


def main() -> int:
    """Upgrade the records of this home; returns the exit code, after a sentence where they cannot be upgraded."""
    try:
        upgrade(Home.default().prepare())
    except Exception as error:
        sentence = _told(error)
        if sentence is None:
            raise
        print(f"anon-pipeline: {sentence}", file=sys.stderr)
        return BAD_INPUT
    return 0


def _told(error: Exception) -> str | None:
    root = Home.default().root
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, CommandError):  # Alembic does not know the schema
        return f"{root}: {OTHER_SCHEMA}"
    if (fault := fault_of_records(error)) is not None:
        return f"{root}: {fault}"
    return f"{root}: the disk is full; free or allow disk space" if out_of_space(error) else None


if __name__ == "__main__":
    sys.exit(main())
