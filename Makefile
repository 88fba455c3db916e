# `make release` and `make test` need nothing but python3 (3.11 or newer) and make.
PYTHON ?= python3
BIN := .venv/bin
# Else every process compiles the package again, and every worker of the tests all of them.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help reference release test fresh explore lowest mutants random-runs pictures lint types fast ui spark bench bench-run bench-large bench-masking bench-attacks bench-over-time bench-utility bench-arx bench-nine bench-minimality bench-figures bench-replayed bench-space bench-enforcement bench-dp bench-synthetic bench-aim bench-small bench-scale bench-postgresql soak lock clean

help: ## What can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

release: .venv/runtime ## Install, then run the Adult release
	$(BIN)/anon-pipeline run data/adult

test: .venv/dev ## Install, then run every test
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

fast: .venv/dev ## The quick tests, with a third of the properties' examples
	ANON_PIPELINE_EXAMPLES=0.33 $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder -m "not slow and not long"

reference: .venv/dev ## docs/spec.md, made anew from the models
	$(BIN)/python -m anon_pipeline.spec.reference > docs/spec.md

# The time, so that no two runs draw alike; SEED=... draws as a former run did.
SEED ?= $(shell date +%Y%m%d%H%M%S)
SEED := $(SEED)# asked once, so that what is printed is what is used
PROPERTIES = HYPOTHESIS_PROFILE=fresh $(BIN)/python -m pytest -m hypothesis -n auto --maxprocesses 4 --dist loadfile --hypothesis-seed=$(SEED)

fresh: .venv/dev ## The property tests, with examples drawn anew under a seed that is printed (EXAMPLES=0.2: a fifth)
	@echo "SEED=$(SEED)"
	ANON_PIPELINE_EXAMPLES=$(or $(EXAMPLES),1) $(PROPERTIES)

explore: .venv/dev ## The property tests with a hundred times their examples (hours; EXAMPLES=N: N times)
	@echo "SEED=$(SEED)"
	ANON_PIPELINE_EXAMPLES=$(or $(EXAMPLES),100) $(PROPERTIES)

lowest: ## The quick tests with the oldest versions that pyproject.toml allows, in .venv-lowest (needs uv)
	uv venv -q --clear --python $(PYTHON) .venv-lowest
	uv pip install -q --python .venv-lowest --resolution lowest-direct -e ".[build,dev]"
	ANON_PIPELINE_EXAMPLES=0.33 .venv-lowest/bin/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder -m "not slow and not long"

mutants: .venv/dev ## Plant small mistakes and see whether the tests of the room notice (MINUTES per room)
	$(BIN)/python -m benchmarks.mutants --minutes $(or $(MINUTES),20)

random-runs: .venv/dev ## Whole runs of random tables under random specs, for MINUTES (SEED=2: others)
	$(BIN)/python -m benchmarks.random_runs --minutes $(or $(MINUTES),20) --seed $(SEED)

pictures: .venv/dev ## The README's pictures, of the release that `make release` has made (needs a browser)
	$(BIN)/python -m anon_pipeline_tests.docs.pictures data/adult docs/images l_diversity_income

lint: .venv/dev ## Formatting, style and the layers of the house
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: .venv/dev ## Type checking
	$(BIN)/mypy anon_pipeline

ui: .venv/runtime ## Dagster's web UI on loopback
	$(BIN)/anon-pipeline ui

bench: .venv/runtime ## Side by side with peers (each installed into an environment of its own), and what judging costs
	$(BIN)/python -m benchmarks.metrics
	$(BIN)/python -m benchmarks.enforcement
	$(BIN)/python -m benchmarks.peers --install

bench-run: .venv/runtime ## The whole job of Adult and of 3,000 people by step, on one thread and on all
	$(BIN)/python -m benchmarks.run

bench-large: .venv/dev ## 1, 10 and 100 million people, and Spark at 10 million (20 GB of disk, half an hour)
	$(BIN)/python -m benchmarks.large --rows 1000000 10000000 --memory 1500MB
	$(BIN)/python -m benchmarks.large --rows 100000000 --memory 3GB --spread 1
	$(BIN)/python -m benchmarks.large --rows 10000000 --engine spark --spread 1

bench-masking: .venv/runtime ## Masking 1 and 10 million people row by row, against rewriting the table
	$(BIN)/python -m benchmarks.masking --rows 1000000 10000000

bench-synthetic: .venv/dev ## Synthetic tables and models of Adult at four epsilons, five draws each
	$(BIN)/python -m benchmarks.synthetic

bench-aim: .venv/dev ## Our synthetic table of Adult beside AIM's (fetches packages from PyPI, half an hour)
	$(BIN)/python -m benchmarks.aim

bench-attacks: .venv/runtime ## What attacks find in several releases of Adult
	$(BIN)/python -m benchmarks.attacks

bench-over-time: .venv/runtime ## Twenty-four monthly releases of a changing population, four ways, and what demands tell over time
	$(BIN)/python -m benchmarks.over_time
	$(BIN)/python -m benchmarks.merged_over_time

bench-utility: .venv/runtime ## What releases of eight tables are worth at eight values of k (fetches packages from PyPI)
	$(BIN)/python -m benchmarks.utility --processes 2

bench-arx: .venv/runtime ## Beside what ARX 3.9.2 reaches on the same rows of Adult
	$(BIN)/python -m benchmarks.arx

bench-nine: .venv/runtime ## Adult with nine quasi-identifiers, beside the figures published for the method
	$(BIN)/python -m benchmarks.nine

bench-minimality: .venv/runtime ## What running the anonymizer again tells of the people of small tables
	$(BIN)/python -m benchmarks.minimality

bench-figures: .venv/runtime ## What the figures of a source tell of one person to who knows all others
	$(BIN)/python -m benchmarks.source_figures

bench-replayed: .venv/runtime ## What running the anonymizer again tells of Adult's people, and what hiding it costs
	$(BIN)/python -m benchmarks.replayed

bench-enforcement: .venv/runtime ## What refinement and a demand cost beside the tree, up to a million people
	$(BIN)/python -m benchmarks.demand

bench-space: .venv/runtime ## How often the published classes say of a person what the private tree says
	$(BIN)/python -m benchmarks.release_space

spark: .venv/spark ## Install with the Spark engine (needs a Java 17 runtime)

bench-dp: .venv/dev ## Noisy statistics of ten million people, against plain DuckDB and a sort
	$(BIN)/python -m benchmarks.differential_privacy

bench-scale: .venv/dev ## What Spark needs per person, and what that makes of billions on a cluster (needs Java)
	$(BIN)/python -m benchmarks.scale

bench-small: .venv/dev ## What should cost little: an error before any work, opening a database, putting a release away
	$(BIN)/python -m benchmarks.small_costs

bench-postgresql: .venv/dev ## Ten million people from a PostgreSQL server, and a million from MariaDB (needs both installed, 3 GB of disk)
	$(BIN)/python -m benchmarks.servers --server postgresql --rows 10000000
	$(BIN)/python -m benchmarks.servers --server mysql --rows 1000000

soak: .venv/runtime ## Three hundred ticks of the sensor with kills, full disks and bad sources (TICKS=40: fewer)
	$(BIN)/python -m benchmarks.soak --ticks $(or $(TICKS),300)

lock: ## Pin the requirements anew (needs uv)
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
		--no-strip-extras -q --extra build pyproject.toml -o requirements/runtime.txt
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
		--no-strip-extras -q --extra build --extra mysql --extra postgresql --extra server -c requirements/runtime.txt pyproject.toml \
		-o requirements/server.txt
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
		--no-strip-extras -q --extra build --extra spark -c requirements/runtime.txt pyproject.toml -o requirements/spark.txt
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
		--no-strip-extras -q --extra build --extra dev -c requirements/spark.txt pyproject.toml -o requirements/dev.txt

clean: ## Remove the virtual environment and caches (releases and the private zone stay)
	rm -rf .venv .venv-lowest .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv

.venv/runtime: .venv/bin/python requirements/runtime.txt pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/runtime.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

.venv/spark: .venv/bin/python requirements/spark.txt pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/spark.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@ .venv/runtime

.venv/dev: .venv/bin/python requirements/dev.txt pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@ .venv/runtime .venv/spark
