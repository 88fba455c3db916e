"""The last that the tests' fork server imports: what stands then is never collected in a fork, and so never copied.

Nor is what a fork makes itself: a seventh of a small run was spent looking for garbage.
"""

import gc

from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.sql import get_alembic_config
from mlflow.store.db.utils import _get_alembic_config
from mlflow.tracking._model_registry.utils import _get_store_registry
from narwhals import plugins
from sqlalchemy.orm import configure_mappers
from sqlparse.lexer import Lexer
from typer import main

from anon_pipeline.cli import app
from anon_pipeline.pipeline.quick_records import migrations
from anon_pipeline.release.manifest import software
from anon_pipeline.report.templates import template

# What each process else does for itself: the mappings of MLflow's tables, the migrations of both tools, our pages, and
# all commands with their options, a tenth of a second for the one that is run. Two libraries look through all that is
# installed for plugins, and a manifest names the versions of some and the hash of all our files: as much again.
configure_mappers()
for config in (_get_alembic_config(""), get_alembic_config(sqlite_run_storage.__file__)):
    migrations(config).get_heads()
pages = template("release_report.html").environment
for page in pages.list_templates(extensions=["html"]):
    pages.get_template(page)
commands, get_command = main.get_command(app), main.get_command
main.get_command = lambda instance: commands if instance is app else get_command(instance)  # what Typer.__call__ asks
plugins._discover_entrypoints()
_get_store_registry()
Lexer.get_default_instance()
software()
gc.freeze()
gc.disable()
