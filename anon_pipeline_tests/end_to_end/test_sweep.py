"""`anon-pipeline sweep` as a user types it, and the same list as an asset: what it promises a run then gives."""

import csv
import json
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from anon_pipeline.anonymize.policy import mean_loss
from anon_pipeline.home import Home
from anon_pipeline.keys import private_key
from anon_pipeline.pipeline.build import build_definitions
from anon_pipeline.pipeline.instance import open_instance
from anon_pipeline.pipeline.runtime import Runtime
from anon_pipeline.pipeline.stages import Stages
from anon_pipeline.release.facts import losses
from anon_pipeline.release.noise import Noise
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import Place, command, full_policy, people, policy, write_dataset
from anon_pipeline_tests.pipeline.in_steps import released_in_steps

K = "privacy.k_anonymity.k"


def demanding() -> dict[str, Any]:
    content = full_policy() | {"audit": {"enabled": False}}  # no figure of a price list
    content["privacy"]["l_diversity"] = {"column": "ill", "l": 2}
    content["columns"]["age"]["steps"] = [{"technique": "round", "to": 2}]
    return content


def test_the_line_of_the_spec_is_what_a_run_then_gives(fresh: Place) -> None:
    write_dataset(fresh.dataset, people(600), demanding())
    swept = command("sweep", fresh.dataset, "--k", "5,10,700", "--json", home=fresh.home.root)
    assert swept.exit_code == 0, swept.said
    assert "privacy-utility trade-off, tree" in swept.stderr
    told = json.loads(swept.stdout)
    five, ten, many = told["prices"]
    assert [one["settings"] for one in told["prices"]] == [{K: 5}, {K: 10}, {K: 700}]
    assert [one["current"] for one in told["prices"]] == [False, True, False]
    assert "fewer than k = 700" in many["refused"]
    assert many["measured"] is None
    assert five["measured"]["classes"] > ten["measured"]["classes"]
    assert fresh.releases() == {}

    manifest = released_in_steps(fresh).manifest
    measured, promised = manifest["measured"], ten["measured"]
    assert promised["classes"] == measured["class_sizes"]["classes"]
    assert promised["smallest_class"] == measured["class_sizes"]["smallest"]
    spec = ReleaseSpec.load(fresh.dataset)
    candidate = Stages(fresh.home, spec).load("anonymized_table").facts
    assert promised["information_lost"] == pytest.approx(mean_loss(candidate["information_loss"]), rel=1e-9)
    assert measured["information_loss"] == losses(
        candidate, Noise(private_key(spec, fresh.home), spec.dataset, manifest["version"])
    )
    assert promised["homogeneity"]["ill"] == measured["sensitive"]["ill"]["homogeneity"] == 0
    assert promised["largest_risk"] == measured["risk"]["after"]["prosecutor"]["max"]
    assert promised["mean_risk"] == measured["risk"]["after"]["prosecutor"]["mean"]
    assert promised["suppressed"] == 0
    for metric, published in manifest["utility"]["metrics"].items():  # told to four digits
        for when in ("before", "after", "difference"):
            assert ten["utility"]["metrics"][metric][when]["mean"] == pytest.approx(published[when]["mean"], abs=1e-4)


def test_the_table_is_printed_and_the_files_lie_in_the_home(fresh: Place) -> None:
    arguments = ["--set", "suppression.limit=0,0.1", "--set", "guide.spread=0,1", "--no-utility"]
    ended = command("sweep", fresh.dataset, "--k", "25", *arguments, home=fresh.home.root)
    assert ended.exit_code == 0, ended.said
    folder = fresh.home.root / "frontier" / "people"
    said = "".join(ended.stdout.split())
    assert str(folder / "frontier.csv") in said
    assert {file.name for file in folder.iterdir()} == {"frontier.csv", "frontier.svg", "frontier.md"}
    rows = list(csv.DictReader((folder / "frontier.csv").open()))
    assert [(row["suppression.limit"], row["guide.spread"]) for row in rows] == [
        ("0", "0"),
        ("0", "1"),
        ("0.1", "0"),
        ("0.1", "1"),
    ]
    assert not any("accuracy" in name for name in rows[0])
    assert "Aberdeen" not in ended.said + "".join(file.read_text() for file in folder.iterdir())
    assert not list(fresh.home.private.glob("people/sweep/*")), "a copy of the source was left behind"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "say what to vary with --k or --set"),
        (["--k", "1"], "k_anonymity.k: must be greater than or equal to 2"),
        (["--set", "privacy.t_closeness.t=0.2"], "t_closeness.column: is missing"),
        (["--set", "guide.model=linear"], "guide.model: is no path that a trade-off can vary"),
    ],
)
def test_what_cannot_be_swept_is_told_before_any_work(template: Place, arguments: list[str], sentence: str) -> None:
    ended = command("sweep", template.dataset, *arguments, home=template.home.root)
    assert ended.exit_code == 2
    assert sentence in ended.sentence
    assert "Traceback" not in ended.said
    assert "tree" not in ended.stderr


def test_a_spec_switches_the_asset_on_and_the_release_does_not_wait_for_it(fresh: Place) -> None:
    content = policy() | {"frontier": {"k": [5, 10, 999], "set": {"guide.spread": [1]}}}
    write_dataset(fresh.dataset, spec=content)
    spec = ReleaseSpec.load(fresh.dataset)
    definitions = build_definitions([spec], Runtime(home=str(fresh.home.root)))
    asset = dg.AssetKey(["people", "frontier"])
    graph = definitions.resolve_asset_graph()
    assert graph.get(asset).parent_keys == {dg.AssetKey(["people", "raw_data"])}
    assert graph.get(asset).group_name == "people"
    assert "people_release does not make it" in (graph.get(asset).description or "")
    job = definitions.resolve_job_def("people_release")
    assert {key.path[-1] for key in job.asset_layer.executable_asset_keys} == {
        "raw_data",
        "trained_model",
        "predictions",
        "anonymizer_tree",
        "anonymized_table",
        "utility",
        "attack_audit",
        "release",
    }
    assert len(job.asset_layer.asset_graph.asset_check_keys) == len(graph.asset_check_keys) > 5

    with open_instance(Home(fresh.home.root)) as instance:
        materialized = dg.materialize(
            definitions.resolve_asset_graph().assets_defs,
            selection=[dg.AssetKey(["people", "raw_data"]), asset],
            instance=instance,
        )
    assert materialized.success
    (event,) = [one for one in materialized.get_asset_materialization_events() if one.asset_key == asset]
    metadata = event.materialization.metadata
    assert (metadata["settings"].value, metadata["refused"].value) == (3, 1)
    assert "| k 10, guide.spread 1 * |" in str(metadata["price_list"].value)
    assert "data:image/svg+xml;base64," in str(metadata["picture"].value)
    (stored,) = (fresh.home.private / "people" / "frontier").glob("*/record.json")
    assert [price["refused"] is None for price in json.loads(stored.read_text())["facts"]["prices"]] == [
        True,
        True,
        False,
    ]


def test_without_options_the_specs_own_price_list_is_measured(fresh: Place, folder: Path) -> None:
    write_dataset(fresh.dataset, spec=policy() | {"frontier": {"k": [20, 40]}})
    out = folder / "chosen"
    ended = command("sweep", fresh.dataset, "--no-utility", "--out", out, "--json", home=fresh.home.root)
    assert [one["settings"] for one in json.loads(ended.stdout)["prices"]] == [{K: 20}, {K: 40}]
    assert json.loads(ended.stdout)["folder"] == str(out)
    assert (out / "frontier.svg").is_file()
