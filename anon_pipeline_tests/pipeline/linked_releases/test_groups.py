"""A second table of groups of the same people: the attack by subtraction, what refuses it, and what passes."""

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError, Refused, Unavailable
from anon_pipeline.home import Home
from anon_pipeline.pipeline.checks.group import CHECKS, LINKED
from anon_pipeline.pipeline.execution import answer, make
from anon_pipeline.pipeline.expectations.questions import Answer
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.step import CheckDef, Run
from anon_pipeline.release.publication import Published
from anon_pipeline.release.withdraw import withdraw
from anon_pipeline.spec import ReleaseSpec

pytestmark = pytest.mark.long  # whole releases, though made in this process

FINE, COARSE = ["town", "sex", "ill"], ["town", "ill"]


def people(rows: int = 400) -> pd.DataFrame:
    draws = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "town": draws.choice(["Bergen", "Ulm", "Graz", "Lyon"], rows),
            "sex": draws.choice(["f", "m"], rows),
            "age": draws.integers(20, 70, rows),
            "ill": draws.choice(["no", "cold", "gout", "flu"], rows, p=[0.55, 0.2, 0.15, 0.1]),
            "income": draws.integers(100, 900, rows) * 10,
        }
    )


class Place:
    """A home with one source of which datasets group the people."""

    def __init__(self, root: Path) -> None:
        self.root, self.home = root, Home(root / "home").prepare()
        people().to_csv(root / "people.csv", index=False)

    def run(self, dataset: str, columns: list[str], source: str = "people.csv", **more: Any) -> Run:
        step = {"technique": "aggregate", "columns": columns, "threshold": 10, "known": []} | more.pop("step", {})
        roles = {"town": "quasi_identifier", "sex": "quasi_identifier", "age": "quasi_identifier", "ill": "sensitive"}
        content: dict[str, Any] = {
            "dataset": dataset,
            "source": {"path": f"../{source}", **more.pop("how", {})},
            "target": "ill",
            "columns": {name: {"role": role} for name, role in (roles | {"income": "insensitive"}).items()}
            | more.pop("more_columns", {}),
            "privacy": {"k_anonymity": {"k": 10}},
            "steps": [step],
        }
        for name, column in more.pop("of_columns", {}).items():
            content["columns"][name] |= column
        folder = self.root / dataset
        folder.mkdir(exist_ok=True)
        (folder / "release.yaml").write_text(yaml.safe_dump(content | more))
        return Run(ReleaseSpec.load(folder), self.home, DuckDBEngine(self.root / "spill"))


def answered(run: Run) -> Answer:
    """The answer of the gate, after the steps before it."""
    graph = graph_of(run.spec)
    for step in graph.steps[:3]:
        make(graph, step, run)
    answers = [one for part in graph.checks if isinstance(part, CheckDef) for one in answer(graph, part, run)]
    assert all(one.passed for one in answers if one.name != LINKED), answers
    return next(one for one in answers if one.name == LINKED)


def released(run: Run) -> Published:
    gate = answered(run)
    assert gate.passed, gate.sentence
    published = make(graph_of(run.spec), graph_of(run.spec).steps[3], run).published
    assert published is not None
    return published


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def subtracted(fine: Published, coarse: pd.DataFrame) -> int:
    """How many groups that the finer table left out an attacker counts with the coarser one, by subtraction alone."""
    shown = pd.read_parquet(fine.folder / "data.parquet").groupby(COARSE)["people"].agg(["size", "sum"])
    beside = coarse.set_index(COARSE).join(shown, how="inner")
    hidden = beside["people"] - beside["sum"]
    return int(((beside["size"] == 1) & (hidden > 0) & (hidden < 10)).sum())


@pytest.mark.parametrize("dataset", ["figures", "others"])
def test_a_coarser_table_that_tells_what_a_finer_one_hides_is_refused(place: Place, dataset: str) -> None:
    fine = released(place.run("figures", FINE))
    coarse = people().groupby(COARSE, as_index=False).size().rename(columns={"size": "people"})
    assert (told := subtracted(fine, coarse[coarse["people"] >= 10])) > 0
    run = place.run(dataset, COARSE)
    gate = answered(run)
    assert not gate.passed and not gate.crashed
    assert f"beside figures/{fine.version}, of the same people, at least" in gate.sentence
    assert isinstance(gate.measured, int) and gate.measured >= told
    assert "counts of fewer people than the threshold are known" in gate.sentence
    assert "releases withdraw" in gate.sentence and "linked_tables_accepted" in gate.sentence
    with pytest.raises(Refused, match=LINKED):
        make(graph_of(run.spec), graph_of(run.spec).steps[3], run)


def test_so_is_a_finer_one_beside_a_coarser_one_and_the_verdict_is_the_same_each_time(place: Place) -> None:
    released(place.run("figures", COARSE))
    first, again = answered(place.run("figures", FINE)), answered(place.run("figures", FINE))
    assert not first.passed
    assert first == again


def test_the_same_table_again_passes_also_beside_one_that_was_accepted(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    fine = released(place.run("figures", FINE))
    assert not released(place.run("figures", FINE)).new
    assert released(place.run("copies", FINE)).new  # the same groups tell nothing new
    with caplog.at_level(logging.WARNING, logger="anon_pipeline"):
        coarse = released(place.run("others", COARSE, linked_tables_accepted="the towns publish these counts"))
    assert f"beside figures/{fine.version}" in caplog.text
    assert not released(place.run("figures", FINE)).new
    assert coarse.manifest["spec"]["linked_tables_accepted"] == "the towns publish these counts"
    told = json.dumps(coarse.manifest["checks"])
    assert "figures" not in told and "are known from" not in told
    (entry,) = (one for one in coarse.manifest["checks"] if one["name"] == LINKED)
    assert entry["measured"] == 0 and not entry["applies"]


def test_a_withdrawn_table_does_not_count(place: Place) -> None:
    fine = released(place.run("figures", FINE))
    withdraw(place.home, fine.version, "a coarser one replaces it", "figures")
    assert released(place.run("figures", COARSE)).new


def test_tables_of_other_people_do_not_count(place: Place) -> None:
    released(place.run("figures", FINE))
    people(401).to_csv(place.root / "next_month.csv", index=False)
    people()[["town", "sex", "ill", "age", "income"]].assign(town="Oslo").to_csv(place.root / "oslo.csv", index=False)
    assert answered(place.run("next_month", COARSE, "next_month.csv")).passed
    assert answered(place.run("oslo", COARSE, "oslo.csv")).passed


def test_columns_that_a_former_spec_excludes_do_not_hide_that_it_is_of_the_same_people(place: Place) -> None:
    excluded = {name: {"role": "exclude"} for name in ("age", "income")}
    released(place.run("figures", FINE, of_columns=excluded))
    assert not answered(place.run("others", COARSE, of_columns={"sex": {"role": "exclude"}})).passed


def test_people_who_lie_in_a_file_of_another_kind_now_are_the_same_people(place: Place) -> None:
    """An attacker has the finer table of the CSV, whose fields were said to be delimited, and the coarser one."""
    people().to_csv(place.root / "people.csv", index=False, sep=";", encoding="utf-16")
    released(place.run("figures", FINE, how={"delimiter": ";", "encoding": "utf-16"}))
    people().to_parquet(place.root / "people.parquet")
    gate = answered(place.run("others", COARSE, "people.parquet"))
    assert not gate.passed and "of the same people, at least" in gate.sentence


def test_hidden_means_count_as_counts_do(place: Place) -> None:
    frame = people()
    frame.loc[frame.index[(frame["town"] == "Ulm") & (frame["sex"] == "f")][0], "income"] = 10_000_000
    frame.to_csv(place.root / "people.csv", index=False)
    released(place.run("figures", ["town", "sex"], step={"means": ["income"]}))
    dominance = {"n": 1, "share": 0.999, "p_percent": 0}
    gate = answered(place.run("others", ["town"], step={"means": ["income"], "dominance": dominance}))
    assert "at least 1 hidden means are known" in gate.sentence
    assert answered(place.run("others", ["town"])).passed


def test_ends_that_differ_tell_who_is_between_them(place: Place) -> None:
    def steps(first: int) -> dict[str, Any]:
        bins = {"technique": "bin", "edges": [20, first, 70]}
        return {"of_columns": {"age": {"type": "numeric", "steps": [bins]}}}

    released(place.run("figures", ["age"], **steps(40)))
    assert not answered(place.run("others", ["age"], **steps(41))).passed
    assert answered(place.run("others", ["age"], **steps(50))).passed


def test_what_cannot_be_counted_again_is_refused(place: Place) -> None:
    pram = {"type": "categorical", "steps": [{"technique": "pram", "retention": 0.9}]}
    fine = released(place.run("figures", FINE, of_columns={"ill": pram}))
    gate = answered(place.run("others", COARSE))
    assert not gate.passed
    assert f"figures/{fine.version} is of the same people and cannot be judged" in gate.sentence
    assert "pram on ill draws" in gate.sentence


def test_a_lost_opening_is_refused_where_as_many_people_were_read(place: Place) -> None:
    fine = released(place.run("figures", FINE))
    (place.home.private / "openings" / "figures" / f"{fine.version}.json").unlink()
    assert "its opening is not in this home" in answered(place.run("others", COARSE)).sentence


@pytest.mark.parametrize("fails", [InputError, Unavailable])
def test_a_source_that_cannot_be_read_again_is_not_taken_for_that_of_other_people(
    place: Place, monkeypatch: pytest.MonkeyPatch, fails: type[InputError]
) -> None:
    """A full disk while a former table was counted again would have been the way past the gate.

    Whoever has accepted what two tables tell has not accepted what nobody has looked at.
    """
    released(place.run("figures", FINE))
    run = place.run("others", COARSE, linked_tables_accepted="the towns publish these counts")
    graph = graph_of(run.spec)
    for step in graph.steps[:3]:
        make(graph, step, run)

    def no_space(*_: object) -> None:
        raise fails("a file could not be read or written")

    monkeypatch.setattr(run.engine, "store_source", no_space)
    (gate,) = [one for one in answer(graph, CHECKS, run) if one.name == LINKED]
    assert not gate.passed
    assert "of the same people and cannot be judged: a file could not be read" in gate.sentence


def test_a_table_that_was_released_since_the_checks_is_noticed(place: Place) -> None:
    coarse = place.run("others", COARSE)
    assert answered(coarse).passed
    released(place.run("figures", FINE))
    with pytest.raises(Refused, match=LINKED):
        make(graph_of(coarse.spec), graph_of(coarse.spec).steps[3], coarse)


def test_a_policy_that_accepts_nothing_does_not_name_the_key(place: Place) -> None:
    assert "linked_tables_accepted" not in place.run("figures", FINE).spec.policy()
