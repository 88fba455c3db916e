"""What the launchpad may choose: engine, memory and threads, never the home; and no choice changes the release."""

import dagster as dg
import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.pipeline.build import build_definitions
from anon_pipeline.pipeline.instance import open_instance
from anon_pipeline.pipeline.runtime import Runtime
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import Place, policy

SPEC = ReleaseSpec.model_validate(policy() | {"engine": {"memory_limit": "2GB", "threads": 2}})


def runtime_of(config: dict[str, object], runtime: Runtime) -> Runtime:
    """What a step gets for a choice."""
    with dg.build_resources(
        {"runtime": runtime.as_resource()}, resource_config={"runtime": {"config": config}}
    ) as resources:
        made = resources.runtime
    assert isinstance(made, Runtime)
    return made


def test_the_launchpad_offers_engine_memory_and_threads_and_nothing_else(home: Home) -> None:
    job = build_definitions([SPEC], Runtime(home=str(home.root))).resolve_job_def("people_release")
    schema = job.run_config_schema.config_type.fields["resources"].config_type.fields["runtime"]  # type: ignore[attr-defined]
    assert set(schema.config_type.fields["config"].config_type.fields) == {"engine", "memory", "threads"}
    with pytest.raises(dg.DagsterInvalidConfigError):
        job.execute_in_process(
            run_config={"resources": {"runtime": {"config": {"home": "/elsewhere"}}}}, raise_on_error=False
        )


@pytest.mark.parametrize(
    ("runtime", "shown"),
    [
        ({}, {"engine": "duckdb", "memory": "2GB", "threads": 2}),
        ({"engine_name": "spark", "threads": 1}, {"engine": "spark", "memory": "2GB", "threads": 1}),
    ],
)
def test_it_begins_with_what_the_runtime_else_the_spec_says(
    runtime: dict[str, object], shown: dict[str, object], home: Home
) -> None:
    given = Runtime(home=str(home.root), **runtime)  # type: ignore[arg-type]
    assert given.chosen(SPEC) == shown
    job = build_definitions([SPEC], given).resolve_job_def("people_release")
    assert job.run_config == {"resources": {"runtime": {"config": shown}}}


def test_what_is_chosen_holds_and_what_is_not_stays(home: Home) -> None:
    given = Runtime(home=str(home.root), engine_name="spark", threads=3)
    silent = runtime_of({}, given)
    assert (silent.home, silent.engine_name, silent.memory_limit, silent.threads) == (given.home, "spark", None, 3)
    chosen = runtime_of({"engine": "duckdb", "memory": "1GB", "threads": 1}, given)
    assert (chosen.home, chosen.engine_name, chosen.memory_limit, chosen.threads) == (given.home, "duckdb", "1GB", 1)
    assert chosen.run(SPEC).threads == 1


@pytest.mark.parametrize(("memory", "threads"), [("much", 1), ("1GB", 0), ("1GB", -1), ("'; DROP TABLE x; --", None)])
def test_a_choice_that_cannot_be_used_is_told(memory: str, threads: int | None, home: Home) -> None:
    chosen = runtime_of({"memory": memory, "threads": threads}, Runtime(home=str(home.root)))
    with pytest.raises(InputError, match=r"memory and threads: .* cannot be used; write for example 4GB and 2"):
        chosen.run(SPEC)


@pytest.fixture
def home(tmp_path) -> Home:
    return Home(tmp_path / "home").prepare()


def test_the_release_does_not_depend_on_the_choice_and_the_run_tells_its_progress(
    published: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same release is found to stand already; a line of progress and others are in the run's event log."""
    monkeypatch.setenv("ANON_PIPELINE_PROGRESS_SECONDS", "0")
    definitions = build_definitions([published.spec], Runtime(home=str(published.home.root)))
    config = {"resources": {"runtime": {"config": {"engine": "duckdb", "memory": "700MB", "threads": 1}}}}
    with open_instance(published.home) as instance:
        result = definitions.resolve_job_def("people_release").execute_in_process(config, instance)
        lines = [(entry.level, entry.user_message) for entry in instance.all_logs(result.run_id)]
    published_release = result.asset_materializations_for_node("people__release")[0]
    assert published_release.metadata["state"].value == "stands already, nothing new is published"
    assert (20, "people: raw_data ...") in lines
    assert (20, "people: 400 people, 5 columns") in lines
    assert any(" of " in message and "left" in message for _, message in lines)
