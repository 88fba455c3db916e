"""Brings Dagster's and MLflow's records to the installed schemas: `python -m anon_pipeline.pipeline.upgrade`.

Their own commands do the same, but MLflow's command takes the address with the password as an argument.
"""

import sys

import sqlalchemy as sql
from sqlalchemy.pool import NullPool

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.pipeline.instance import open_instance
from anon_pipeline.pipeline.runtime import BAD_INPUT
from anon_pipeline.pipeline.tracking.runs import Tracking


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


if __name__ == "__main__":
    try:
        upgrade(Home.default().prepare())
    except InputError as error:
        print(f"anon-pipeline: {error}", file=sys.stderr)
        sys.exit(BAD_INPUT)
