"""Dagster's entry: every dataset under `data/` as assets, checks, a job, a schedule and a sensor."""

from anon_pipeline.pipeline.build import build_definitions

defs = build_definitions()
