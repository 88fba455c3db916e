"""A synthetic release through the whole graph: what leaves, what stays silent, and that asking again costs nothing."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import re
import signal
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from sklearn.frozen import FrozenEstimator

from anon_pipeline.destinations import delivery
from anon_pipeline.differential_privacy.budget import Allowance, Budget
from anon_pipeline.differential_privacy.reading import asked_of
from anon_pipeline.errors import Refused
from anon_pipeline.home import Home
from anon_pipeline.learning.guide import Task, train
from anon_pipeline.learning.models import build_model
from anon_pipeline.learning.problem import Fitting, Problem
from anon_pipeline.pipeline.launch import Outcome, launch
from anon_pipeline.pipeline.runtime import Runtime
from anon_pipeline.pipeline.tracking.registered_model import requirements
from anon_pipeline.pipeline.tracking.runs import Tracking
from anon_pipeline.release import ledger
from anon_pipeline.release.descriptors.written import DESCRIPTORS
from anon_pipeline.release.exported_report import Form, export
from anon_pipeline.report.synthetic_report import right_guesses
from anon_pipeline.spec import ColumnType, Destination, Guide, ReleaseSpec
from anon_pipeline_tests.differential_privacy.synthetic_people import people, write
from anon_pipeline_tests.end_to_end import sabotage
from anon_pipeline_tests.end_to_end.harness import command, release_folders
from anon_pipeline_tests.skips import require_package

pytestmark = pytest.mark.slow

#: A number of people that stands nowhere else.
PEOPLE = 3271


@dataclass(frozen=True)
class Released:
    spec: ReleaseSpec
    home: Home
    outcome: Outcome
    again: Outcome

    @property
    def folder(self) -> Path:
        assert self.outcome.folder is not None
        return self.outcome.folder


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Released:
    folder = tmp_path_factory.mktemp("synthetic")
    home = Home(folder / "home").prepare()
    spec = write(folder / "clinic", people(PEOPLE), model={"kind": "naive_bayes"})
    runtime = Runtime(home=str(home.root))
    return Released(spec, home, launch(spec, home, runtime), launch(spec, home, runtime))


def test_it_is_released_and_again_costs_nothing(released: Released) -> None:
    assert released.outcome.exit_code == 0, released.outcome.failures
    assert released.outcome.new and not released.again.new
    assert released.again.manifest["version"] == released.outcome.manifest["version"]
    assert re.fullmatch("[0-9a-f]{12}", released.folder.name)  # as long as any release's
    state = Budget(released.home, Allowance.of(asked_of(released.spec))).state()
    assert (state.reserved, state.answered) == (1, 1)
    assert not ledger.verify(released.home)


def test_synthetic_rows_are_put_to_a_destination_as_people_are(released: Released, tmp_path: Path) -> None:
    deltalake = require_package("deltalake")
    folder = released.folder
    delivery.deliver(released.home, folder.parent.name, folder.name, [Destination(delta=str(tmp_path / "open"))])
    there = deltalake.DeltaTable(str(tmp_path / "open")).to_pyarrow_table()
    assert there.num_rows == pq.read_metadata(folder / "data.parquet").num_rows
    assert delivery.verify(released.home) == []


def test_the_manifest_says_what_is_promised_and_nothing_of_the_source(released: Released) -> None:
    manifest = json.loads((released.folder / "manifest.json").read_text())
    said = manifest["differential_privacy"]
    wanted = {"unit", "neighbours", "rows_per_unit", "rho", "epsilon", "delta", "conversion", "mechanisms"}
    assert wanted | {"domains_sha256", "subject"} <= set(said)
    assert said["epsilon"] <= 2 and manifest["software"]["packages"]["opendp"].startswith("0.16")
    assert not {"source", "utility", "audit", "measured", "seed", "commitment", "openings"} & set(manifest)
    assert {one["name"] for one in manifest["checks"]} == {
        "has_released_columns_only", "has_public_values_only", "has_noisy_size", "costs_its_share", "is_paid_for",
    }  # fmt: skip
    assert set(manifest["files"]) == {"data.parquet", "measurements.json", "model.zip", "report.html", *DESCRIPTORS}
    assert "token" not in json.loads((released.folder / "measurements.json").read_text())


def test_no_exact_figure_and_no_hash_of_the_source_lies_anywhere(released: Released) -> None:
    """Neither in what is published nor in Dagster, MLflow and the stored results, which others may look at."""
    source = released.spec.source_path
    secrets = [hashlib.sha256(source.read_bytes()).hexdigest().encode(), b"p3270"]
    exact = [b'"rows": %d' % PEOPLE, b"%d rows" % PEOPLE, b"%d people" % PEOPLE, f"{PEOPLE:,}".encode()]
    assert len(pq.read_table(released.folder / "data.parquet")) != PEOPLE or released.outcome.manifest["quality"]
    for file in released.home.root.rglob("*"):
        if not file.is_file():
            continue
        content = file.read_bytes()
        assert not any(one in content for one in secrets), file
        assert not any(one in content for one in exact) or f"{PEOPLE}" in str(
            released.outcome.manifest["rows"]["synthetic"]
        ), file


def test_the_source_is_not_copied(released: Released) -> None:
    tables = list((released.home.private / "clinic").rglob("*.parquet"))
    assert [one.parent.parent.name for one in tables] == ["synthetic_table"]


def test_the_report_explains_epsilon(released: Released) -> None:
    page = (released.folder / "report.html").read_text()
    epsilon = released.outcome.manifest["differential_privacy"]["epsilon"]
    assert f"{right_guesses(epsilon, 1e-6) * 100:.1f} of 100" in page and "<svg" in page
    markdown = export(released.home, released.outcome.manifest["version"], Form.MARKDOWN).decode()
    assert "What epsilon means" in markdown and "of it noise" in markdown
    assert right_guesses(0, 0) == 0.5 and right_guesses(1, 0) == pytest.approx(0.731059, abs=1e-6)


class Modules(pickle.Unpickler):
    """Loads a pickle and notes the packages whose classes and functions it names."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content))
        self.named: set[str] = set()

    def find_class(self, module_name: str, global_name: str) -> Any:
        self.named.add(module_name.partition(".")[0])
        return super().find_class(module_name, global_name)


def test_the_models_requirements_name_every_package_that_its_pickle_needs(released: Released) -> None:
    with zipfile.ZipFile(released.folder / "model.zip") as archive:
        required = archive.read("requirements.txt").decode().split()
        reading = Modules(archive.read("model.pkl"))
    reading.load()
    assert {"anon_pipeline", "sklearn"} <= reading.named
    assert reading.named - sys.stdlib_module_names <= packages(required)


def packages(required: list[str]) -> set[str]:
    """The names by which the packages of a list of requirements are imported."""
    return {line.partition("==")[0].replace("scikit-learn", "sklearn").replace("-", "_") for line in required}


def test_nor_does_the_other_kind_of_model_need_another_package() -> None:
    kinds = {"age": ColumnType.NUMERIC, "city": ColumnType.CATEGORICAL}
    frame = pd.DataFrame({"age": np.arange(200.0), "city": np.array(["Ulm", "Graz"] * 100, dtype=object)})
    model = build_model("gradient_boosting", Task.CLASSIFICATION, kinds, 0, None, 5).fit(frame, ["no", "yes"] * 100)
    reading = Modules(pickle.dumps(FrozenEstimator(model)))
    reading.load()
    assert {"anon_pipeline", "sklearn"} <= reading.named
    assert reading.named - sys.stdlib_module_names <= packages(requirements())


def test_the_model_is_in_mlflows_format_and_guides_without_learning(released: Released, tmp_path: Path) -> None:
    import mlflow

    with zipfile.ZipFile(released.folder / "model.zip") as archive:
        archive.extractall(tmp_path / "model")
    loaded = mlflow.sklearn.load_model(str(tmp_path / "model"))
    frame = people(400, seed=5).to_pandas()
    features = frame[released.spec.features].assign(age=frame["age"].astype(float))
    chances = loaded.predict_proba(features)
    assert chances[frame["age"] > 75].mean(axis=0)[1] > chances[frame["age"] < 30].mean(axis=0)[1] + 0.2
    guide = Guide.model_validate({"model": {"mlflow": "models:/clinic/1"}, "predictions": "in_sample"})
    kinds = {"age": ColumnType.NUMERIC, "city": ColumnType.CATEGORICAL, "weight": ColumnType.NUMERIC}
    kinds = {name: kinds[name] for name in released.spec.features}
    fold = np.arange(400) % 5
    load = Tracking(released.home).load_model
    trained = train(Problem(features, frame["ill"], Task.CLASSIFICATION, kinds, 0), guide, fold, Fitting(load))
    turned = train(
        Problem(features, frame["ill"].map({"yes": "no", "no": "yes"}), Task.CLASSIFICATION, kinds, 0),
        guide,
        fold,
        Fitting(load),
    )
    assert (trained.guidance(features, fold) == turned.guidance(features, fold)).all(), "it learned of these people"


def test_an_exhausted_budget_publishes_nothing(released: Released, tmp_path: Path) -> None:
    spec = write(tmp_path / "clinic", people(500, seed=8), synthesis={"epsilon": 3.99})
    outcome = launch(spec, released.home, Runtime(home=str(released.home.root)))
    assert outcome.exit_code == 3 and "is left" in outcome.failures[0]
    assert str(Refused(outcome.failures)).count("refused: ") == 1, "as a program is told of it"


@pytest.mark.parametrize(("copies", "paid"), [(1, False), (100, True)])
def test_a_line_that_breaks_is_named_nowhere(copies: int, paid: bool, tmp_path: Path) -> None:
    """A line is a person, and Dagster's pages showed its number and how many fields it has."""
    home = Home(tmp_path / "home").prepare()
    table = people(500)
    spec = write(tmp_path / "clinic", table, source={"path": "people.csv"})
    header, *rows = table.to_pandas().to_csv(index=False).splitlines()
    spec.source_path.write_text("\n".join([header, *rows * copies, f"{rows[0]},one more"]))
    outcome = launch(spec, home, Runtime(home=str(home.root)))
    assert outcome.exit_code == 2 and not any(letter.isdigit() for letter in "".join(outcome.failures))
    assert "stays spent" in outcome.failures[0] if paid else "cannot be read" in outcome.failures[0]
    assert Budget(home, Allowance.of(asked_of(spec))).state().reserved == paid
    named = re.compile(rf"[Ll]ine:? {500 * copies + 2}\b|one more".encode())
    assert not [file for file in home.root.rglob("*") if file.is_file() and named.search(file.read_bytes())]


def test_a_run_that_was_killed_after_it_had_measured_spends_nothing_more(tmp_path: Path) -> None:
    """Every call that spends or publishes is tried in `differential_privacy/test_killed_synthesis.py`."""
    home = Home(tmp_path / "home")
    spec = write(tmp_path / "clinic", people(300))
    killed = command(
        "run", tmp_path / "clinic", home=home.root, sabotage=sabotage.between_the_measurements_and_their_pointer
    )
    assert killed.exit_code == -signal.SIGKILL, killed.said
    budget = Budget(home, Allowance.of(asked_of(spec)))
    assert (budget.state().reserved, budget.state().answered) == (1, 1)
    assert not release_folders(home, "clinic")
    after = command("run", tmp_path / "clinic", home=home.root)
    assert after.exit_code == 0, after.said
    assert (budget.state().reserved, budget.state().answered) == (1, 1)
    assert len(release_folders(home, "clinic")) == 1 and not ledger.verify(home)


def test_a_table_that_was_changed_is_not_published(tmp_path: Path) -> None:
    from anon_pipeline.differential_privacy.synthesis.made_table import outside

    spec = write(tmp_path / "clinic", people(10))
    table = people(10).select(["city"])
    domains: dict[str, Any] = {"city": asked_of(spec).domains["city"]}
    assert outside(table, domains)["city"] == table.column("city").to_pylist().count("elsewhere")


def test_the_sensor_shows_neither_size_nor_hash_of_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import dagster as dg

    from anon_pipeline.pipeline.automation.anew import build_anew_job
    from anon_pipeline.pipeline.automation.jobs import build_job
    from anon_pipeline.pipeline.automation.sensor import build_sensor
    from anon_pipeline.pipeline.runtime import Runtime

    monkeypatch.setenv("ANON_PIPELINE_HOME", str(tmp_path / "home"))
    spec = write(tmp_path / "clinic", people(40))
    runtime = Runtime(home=str(tmp_path / "home"))
    sensor = build_sensor(spec, build_job(spec), build_anew_job(spec, runtime))
    context = dg.build_sensor_context(dg.DagsterInstance.ephemeral(), resources={"runtime": runtime})
    request = sensor(context)
    assert isinstance(request, dg.RunRequest)
    said = f"{request.run_key} {request.tags} {context.cursor}"
    assert hashlib.sha256(spec.source_path.read_bytes()).hexdigest() not in said
    assert hashlib.sha256(hashlib.sha256(spec.source_path.read_bytes()).hexdigest().encode()).hexdigest() not in said
    assert str(spec.source_path.stat().st_size) not in json.dumps(json.loads(str(context.cursor))["stamp"])[:8]
