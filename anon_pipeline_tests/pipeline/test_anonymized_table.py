"""What is counted of the candidate for release."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from anon_pipeline.home import Home
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.runtime import Runtime
from anon_pipeline.pipeline.stages import Stages
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import people, policy, write_dataset


@pytest.mark.long
@pytest.mark.parametrize(("grid", "everybody_alike"), [(5, False), (1000, True)])
def test_the_information_lost_is_that_of_the_values_that_are_released(
    grid: int, everybody_alike: bool, tmp_path: Path
) -> None:
    """Groups that show the same value are one class to a reader, however narrow each of them is."""
    policy_of_age = policy() | {"audit": {"enabled": False}}
    columns = policy_of_age["columns"]
    roles = {name: {"role": "exclude"} for name, column in columns.items() if column["role"] == "quasi_identifier"}
    policy_of_age["columns"] = columns | roles | {"age": columns["age"] | {"grid": grid}}
    spec = ReleaseSpec.load(write_dataset(tmp_path / "people", people(), policy_of_age))
    run = Runtime(home=str(Home(tmp_path / "home").prepare().root)).run(spec, {"dagster": "a test", "mlflow": "a test"})
    graph = graph_of(spec)
    for step in graph.steps[: [step.name for step in graph.steps].index("anonymized_table") + 1]:
        make(graph, step, run)
    stages = Stages(run.home, run.spec)
    candidate, grouped = stages.load("anonymized_table"), stages.load("anonymizer_tree")
    shown = pq.read_table(candidate.folder / "data.parquet")["age"].unique()
    assert grouped.facts["information_loss"] < 0.1
    if everybody_alike:
        assert len(shown) == 1 and candidate.facts["information_loss"] == {"age": pytest.approx(1.0)}
    else:
        assert len(shown) > 5 and candidate.facts["information_loss"]["age"] < 0.2
