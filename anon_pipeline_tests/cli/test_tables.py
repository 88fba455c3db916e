"""What a command says on a terminal of a result: every line of it, also in the cases that hardly ever come."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.table import Table

from anon_pipeline.attack.rates import Known, Rates, finding, wilson
from anon_pipeline.attack.released import Knowledge
from anon_pipeline.audit.foreign_table import AttackedTable
from anon_pipeline.cli import tables
from anon_pipeline.cli.terminal import Terminal
from anon_pipeline.learning.scores import Comparison, Estimate
from anon_pipeline.learning.tradeoff import Measured, TradeOffPoint
from anon_pipeline.learning.utility import Utility
from anon_pipeline.masking.execution import ColumnCost, StepReport
from anon_pipeline.pipeline.dry_run import DryRun
from anon_pipeline.pipeline.masked_files import Masked
from anon_pipeline.privacy.judge import Finding
from anon_pipeline.privacy.verdict import Verdict
from anon_pipeline.profiling.new_dataset import NewDataset
from anon_pipeline.release.difference import Change
from anon_pipeline.release.ledger import Entry
from anon_pipeline.spec import Role
from anon_pipeline_tests.cli.printed import Printed, lines_of
from anon_pipeline_tests.report.pages import manifest_content

SCORE = (
    "accuracy  0.8741 (0.8705 to 0.8777) before, 0.8737 (0.8699 to 0.8775) after; "
    "difference -0.0004 (-0.0019 to +0.0011)"
)


def people(**changed: Any) -> dict[str, Any]:
    """The manifest of a release of people, with a single score."""
    content = manifest_content()
    content["utility"]["metrics"] = {"accuracy": content["utility"]["metrics"]["accuracy"]}
    return content | changed


def test_a_release_of_people(printed: Printed) -> None:
    """A path or a column in brackets was taken for a style: it was not printed, or ended the command."""
    content = people()
    content["verified"][1]["demand"] = "every class has at least 2 distinct values of [/income] :heart:"
    tables.show_release(content, Path("var/[/b]/adult/3f9c1a7be042"), True)
    assert printed() == [
        "adult 3f9c1a7be042",
        "state  released",
        "people  48,293 released, 549 suppressed",
        "classes  2,175; the smallest has 10 people",
        "information lost  11.5% of the quasi-identifiers' variance",
        "demand  every class has at least 10 people: measured 10",
        "demand  every class has at least 2 distinct values of [/income] :heart:: measured 2",
        SCORE,
        "folder  var/[/b]/adult/3f9c1a7be042",
    ]


@pytest.mark.parametrize(
    ("kind", "new", "withdrawn", "state"),
    [
        ("people", True, False, "released"),
        ("people", False, False, "stands already; nothing new was published"),
        ("synthetic", False, False, "stands already; nothing new was published or spent"),
        ("people", True, True, "withdrawn; only its manifest is left"),
        ("people", False, True, "withdrawn; only its manifest is left"),
    ],
)
def test_whether_a_release_stands(printed: Printed, kind: str, new: bool, withdrawn: bool, state: str) -> None:
    tables.show_release(synthetic() if kind == "synthetic" else people(), None, new, withdrawn)
    lines = printed()
    assert lines[1] == f"state  {state}"
    assert not [line for line in lines if line.startswith("folder")]


@pytest.mark.parametrize(
    ("share", "said"), [(0.0002, "< 0.1%"), (0.9998, "> 99.9%"), (0.0, "0%"), (1.0, "100%"), (0.1146, "11.5%")]
)
def test_a_little_that_is_lost_is_not_nothing(printed: Printed, share: float, said: str) -> None:
    """0.0% was printed where something was lost, and 100.0% where something was kept; the report said otherwise."""
    content = people()
    content["measured"]["information_loss"] |= {"mean": share, "step": 0.0001}
    tables.show_release(content, None, True)
    assert printed()[4] == f"information lost  {said} of the quasi-identifiers' variance"


def test_few_folds_and_coarse_steps_are_said(printed: Printed) -> None:
    content = people()
    content["utility"]["folds"] = 2
    content["measured"]["information_loss"] |= {"mean": 0.0, "step": 0.05}
    tables.show_release(content, None, True)
    lines = printed()
    assert lines[4] == "information lost  at most 2.5% of the quasi-identifiers' variance, in steps of 5%"
    assert lines[-1].startswith("to be weighed  Accuracy was measured in 2 folds only")


def synthetic(**more: Any) -> dict[str, Any]:
    privacy = {"epsilon": 3.14159, "delta": 1.25e-6, "rho": 0.123456, "unit": "person", "subject": "patients"}
    head = {"kind": "synthetic", "dataset": "adult", "version": "3f9c1a7be042"}
    return head | {"rows": {"synthetic": 48842}, "differential_privacy": privacy} | more


def test_a_synthetic_release(printed: Printed) -> None:
    rows = [
        "rows  48,842 synthetic rows, nobody's",
        "promise  epsilon 3.142 at delta 1.25e-06 for every person",
        "budget  rho 0.1235 of that of the subject patients",
    ]
    tables.show_release(synthetic(), None, True)
    assert printed()[2:] == rows
    tables.show_release(synthetic(model={"kind": "naive_bayes", "target": "income"}), None, True)
    assert printed()[2:] == [*rows, "model  naive_bayes of income, in model.zip"]


def test_a_table_of_groups(printed: Printed) -> None:
    groups = {"people": 40_000, "people_left_out": 1_234, "groups": 2_000, "smallest": 1_010, "means": [], "note": "n"}
    content = {"dataset": "adult", "version": "v", "groups": groups, "verified": people()["verified"][:1]}
    tables.show_release(content, None, True)
    lines = [
        "people  40,000 counted, 1,234 in groups that are left out",
        "groups  2,000; the smallest counts 1,010 people",
        "note  n",
        "demand  every class has at least 10 people: measured 10",
    ]
    assert printed()[2:] == lines
    groups |= {"means": ["age", "hours"], "means_hidden": 5_678}
    tables.show_release(content, None, True)
    assert printed()[2:] == [*lines[:2], "means  age, hours; 5,678 values are hidden", *lines[2:]]
    tables.show_release(content | {"groups": groups | {"means_hidden": 1}}, None, True)
    assert "means  age, hours; 1 value is hidden" in printed()


def test_a_release_of_statistics(printed: Printed) -> None:
    privacy = {"epsilon": 3.14159, "delta": 1e-6}
    questions = {"[bold]ages": "SELECT COUNT(*) FROM [people]"}
    content = {"dataset": "adult", "version": "v", "differential_privacy": privacy, "questions": questions}
    tables.show_release(content, None, True)
    assert printed()[2:] == [
        "differential privacy  epsilon 3.142 at delta 1e-06",
        "[bold]ages  SELECT COUNT(*) FROM [people]",
    ]


@pytest.mark.parametrize(
    ("mean", "low", "high", "sign", "text"),
    [
        (None, None, None, "", "not defined"),
        (0.5, None, None, "", "0.5000"),
        (0.5, None, 0.75, "", "0.5000"),
        (0.5, 0.25, None, "", "0.5000"),
        (0.5, 0.25, 0.75, "", "0.5000 (0.2500 to 0.7500)"),
        (0.5, -0.25, 0.75, "+", "+0.5000 (-0.2500 to +0.7500)"),
        (99.99, 100, 999.94, "", "99.9900 (100.0 to 999.9)"),
        (-1000, -1234.5, 1234.5, "+", "-1,000 (-1,234 to +1,234)"),
        (-100, -99.99, 0.0, "", "-100.0 (-99.9900 to 0.0000)"),
    ],
)
def test_a_score_has_decimals_by_its_size(
    mean: float | None, low: float | None, high: float | None, sign: str, text: str
) -> None:
    assert tables.interval({"mean": mean, "low": low, "high": high}, sign) == text


def test_a_small_error_keeps_its_digits() -> None:
    """Of a concentration all errors are small: 0.0000 said that there is none."""
    errors: dict[str, float | None] = {"mean": 0.00002345, "low": 0.00001, "high": 0.0123}
    assert tables.interval(errors, is_error=True) == "0.00002345 (0.00001000 to 0.0123)"
    assert tables.interval(errors, "+", is_error=True) == "+0.00002345 (+0.00001000 to +0.0123)"
    assert tables.interval(errors) == "0.0000 (0.0000 to 0.0123)"  # of a share
    assert tables.interval(dict.fromkeys(errors, 0.0), is_error=True) == "0.0000 (0.0000 to 0.0000)"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "infinite"),
        (math.inf, "infinite"),
        (10.0, "10"),
        (12_345, "12,345"),
        (12_345.0, "12,345"),
        (0.58123, "0.5812"),
    ],
)
def test_a_measured_value(value: float | None, text: str) -> None:
    assert tables.number(value) == text


def test_a_verdict_on_a_table(printed: Printed) -> None:
    findings = [
        Finding("k_anonymity", "every class has at least 10 people", 3.0, 1_200),
        Finding("l_diversity_ill", "every class has at least 2 values of [/ill] :heart:", None, 0),
    ]
    verdict = Verdict(
        rows=12_345,
        classes=2_100,
        smallest_class=1_003,
        rows_below=4_321,
        findings=findings,
        problems=["[name] must not be there"],
        sensitive={"[ill]": {"t": 0.58123, "distinct_l": 2.0}},
        risk={"prosecutor": {"max": 1 / 3, "mean": 0.0123456}},
    )
    tables.show_verdict("[/people].csv", verdict)
    assert printed() == [
        "[/people].csv: does not hold",
        "demand  measured  classes that fail  holds",
        "every class has at least 10 people  3  1,200  NO",
        "every class has at least 2 values of [/ill] :heart:  infinite  0  yes",
        "12,345 rows in 2,100 classes; the smallest has 1,003; 4,321 rows stand in classes that are too small",
        "prosecutor risk of being re-identified: highest 33.3%, mean 1.23%",
        "[ill]: t 0.5812, distinct_l 2",
        "[name] must not be there",
    ]


def test_a_verdict_on_a_table_of_groups(printed: Printed) -> None:
    tables.show_verdict("groups.csv", Verdict(1_500, 1_500, 1_010, 0, [], [], {}, groups=True))
    assert printed() == [
        "groups.csv: holds",
        "demand  measured  groups that fail  holds",
        "1,500 groups; the smallest counts 1,010 people",
    ]


def test_a_verdict_on_a_single_row(printed: Printed) -> None:
    tables.show_verdict("people.csv", Verdict(1, 1, 1, 1, [], [], {}))
    assert printed()[2:] == ["1 row in 1 class; the smallest has 1; 1 row stands in classes that are too small"]


def test_a_group_of_a_single_person(printed: Printed) -> None:
    tables.show_verdict("groups.csv", Verdict(1, 1, 1, 0, [], [], {}, groups=True))
    assert printed()[2:] == ["1 group; the smallest counts 1 person"]


def test_an_attack_on_a_single_row(printed: Printed) -> None:
    tables.show_attacks("people.csv", AttackedTable("people.csv", Knowledge(("age",), ("ill",)), 1, 1, 0, [], []))
    assert printed()[0] == "people.csv: 1 row"


def test_a_dry_run(printed: Printed) -> None:
    steps = {"raw_data": ["has_people", "has_types"], "predictions": ["of_all"], "utility": []}
    tables.show_dry_run(DryRun("adult", 48_842, True, steps, (12.5, 50.0), (0.8, 3.25)))
    listed = ["steps  raw_data, 2 checks", "predictions, 1 check", "utility"]
    assert printed() == [
        "adult: a run could start",
        "people  48,842; every row was read",
        *listed,
        "time  about 12.5 to 50 cpu s (an estimate)",
        "memory  about 0.8 to 3.25 GB at its peak (an estimate)",
    ]
    tables.show_dry_run(DryRun("adult", 48_842, False, steps, None, None))
    assert printed()[1:] == [
        "people  48,842; what each row holds was not looked at",
        *listed,
        "time  not estimated",
        "memory  not estimated",
    ]
    tables.show_dry_run(DryRun("adult", None, False, {}, None, None))
    assert printed()[1] == "people  what each row holds was not looked at"
    tables.show_dry_run(DryRun("adult", None, True, {}, None, None))
    assert printed()[1] == "people  every row was read"


def test_the_attacks_on_a_table(printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    rates = Rates(wilson(30, 100), wilson(10, 100), wilson(10, 100))
    found = finding("[linkage]", "linkability", Known(("age",)), "picks the right record", rates)
    note = f"[These] {'are ' * 20}exact."
    attacked = AttackedTable("people.csv", Knowledge(["age"]), 12_345, 100, 100, [found], [note])
    for width in (40, 300):
        monkeypatch.setattr(tables.out, "width", width)
        tables.show_attacks("people.csv", attacked)
        lines = printed()
        assert lines[:2] == ["people.csv: 12,345 rows", "attack  people in it  others  blind guess  leak  verdict"]
        assert lines[2] == "[linkage]  30\u00a0%  10\u00a0%  10\u00a0%  22.2\u00a0% (10.6\u00a0% to 33.4\u00a0%)  leak"
        assert lines[3:] == [f"[linkage]: {found.sentence}", note]


def test_an_attack_has_a_line_however_long_its_name_is(printed: Printed) -> None:
    rates = Rates(wilson(30, 100), wilson(10, 100), wilson(10, 100))
    found = finding("linkage, all quasi-identifiers " * 7, "linkability", Known(("age",)), "picks it", rates)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tables.out, "width", 80)
        tables.show_attacks("people.csv", AttackedTable("people.csv", Knowledge(["age"]), 5, 5, 5, [found], []))
    assert len(printed()) == 4


def profiled(rows: int, looked_at: int, *questions: tuple[int, str]) -> NewDataset:
    """A new dataset of columns, of which a single one is undecided; of a profile only what is shown."""
    columns = [
        SimpleNamespace(name=name, role=role, question=question)
        for name, role, question in [
            ("[age]", Role.QUASI_IDENTIFIER, None),
            ("city of residence, occupation", Role.QUASI_IDENTIFIER, None),
            ("name", Role.IDENTIFIER, None),
            ("ill", Role.SENSITIVE, "is it sensitive?"),
        ]
    ]
    asked = tuple((line, SimpleNamespace(place=place, question="which?")) for line, place in questions)
    profile = SimpleNamespace(rows=rows, looked_at=looked_at, columns=columns)
    return NewDataset(Path("data/people/release.yaml"), cast(Any, profile), cast(Any, asked))


def test_a_new_dataset(printed: Printed) -> None:
    tables.show_new_dataset("people", profiled(2_000_000, 100_000, (7, "[target]")))
    assert printed()[:3] == [
        "people: 2,000,000 rows, by looking at 100,000 of them",
        "identifier  name",
        "quasi_identifier  [age], city of residence, occupation",
    ]
    tables.show_new_dataset("people", profiled(2_000, 2_000, (7, "[target]")))
    assert printed()[-3:] == [
        "wrote data/people/release.yaml; decide these lines of it, a reason stands above each column:",
        "line 7, [target]: which?",
        "then: anon-pipeline run data/people",
    ]
    tables.show_new_dataset("people", profiled(2_000, 2_000))
    lines = printed()
    assert lines[0] == "people: 2,000 rows"
    assert lines[-2:] == [
        "wrote data/people/release.yaml; no line is left open, but read each: a reason stands above each column",
        "then: anon-pipeline run data/people",
    ]


def test_what_can_be_copied_is_not_folded_in_a_narrow_window(printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables.out, "width", 30)
    tables.show_new_dataset("people", profiled(2_000, 2_000))
    assert printed()[-1] == "then: anon-pipeline run data/people"


def test_the_next_command_can_be_pasted_where_the_folder_has_a_blank(printed: Printed) -> None:
    made = profiled(2_000, 2_000)
    tables.show_new_dataset("people", replace(made, file=Path("our data/people/release.yaml")))
    assert printed()[-1] == "then: anon-pipeline run 'our data/people'"


def test_a_table_without_a_frame_begins_at_the_edge(capsys: pytest.CaptureFixture[str]) -> None:
    tables.show_new_dataset("people", profiled(2_000, 2_000))
    assert capsys.readouterr().out.splitlines()[:2] == ["people: 2,000 rows", "identifier        name"]
    tables.show_attacks("people.csv", AttackedTable("people.csv", Knowledge(["age"]), 5, 5, 0, [], []))
    assert capsys.readouterr().out.splitlines()[1].startswith("attack  people in it")


def test_a_terminal_prints_texts_as_they_are() -> None:
    file = io.StringIO()
    terminal = Terminal(file=file, width=200)
    shown = Table(title="[bold]:heart:", title_justify="left", box=None)
    shown.add_column("[/people] of :heart: and [red]their ages[/red]")
    shown.add_row("[/age] :smile: [bold]")
    terminal.print(shown)
    terminal.print("[/age] :heart:")
    assert lines_of(file.getvalue()) == [
        "[bold]:heart:",
        "[/people] of :heart: and [red]their ages[/red]",
        "[/age] :smile: [bold]",
        "[/age] :heart:",
    ]


def test_a_table_has_no_blanks_at_the_ends_of_lines_in_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends_in_a_blank() -> bool:
        tables.show_new_dataset("people", profiled(2_000, 2_000))
        return any(line.endswith(" ") for line in capsys.readouterr().out.splitlines())

    assert not ends_in_a_blank()
    monkeypatch.setattr(tables.out, "_force_terminal", True)
    assert ends_in_a_blank()


def test_the_privacy_utility_trade_off(printed: Printed) -> None:
    measured = Measured(2_175, 10, 0.1145, 0.01, {"ill": 0.25}, 0.1, 0.045)
    first = TradeOffPoint({"privacy.k_anonymity.k": 10}, False, measured=measured)
    refused = TradeOffPoint({"privacy.k_anonymity.k": 99}, False, refused="the source has [fewer] people")
    files = [Path("frontier.csv"), Path("frontier.md")]
    tables.show_tradeoff("adult", [first, refused], files)
    lines = printed()
    assert len(lines) == 11
    assert lines[:4] == [
        "adult: the privacy-utility trade-off",
        "k 10  k 99",
        "classes  2,175  refused",
        "smallest  10  -",
    ]
    assert lines[-2:] == ["k 99: refused; the source has [fewer] people", "written: frontier.csv, frontier.md"]
    assert "* what the spec says" not in lines
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tables.out, "width", 30)
        tables.show_tradeoff("adult", [first], files)
        assert printed()[-1] == "written: frontier.csv, frontier.md", "a path can be copied from a narrow window"
    score = Comparison(*(Estimate(mean, mean, mean, ()) for mean in (0.875, 0.75, -0.125)))
    utility = cast(Utility, SimpleNamespace(metrics={"accuracy": score}))
    change = "\u22120.1250 (\u22120.1250 to \u22120.1250)"
    spec = TradeOffPoint({"privacy.k_anonymity.k": 5}, True, measured=measured, utility=utility)
    tables.show_tradeoff("adult", [spec, first], files)
    lines = printed()
    assert lines[1] == "k 5 *  k 10"
    assert [line for line in lines if line.startswith("accuracy")] == [f"accuracy: difference  {change}  -"]
    assert lines[-2:] == ["* what the spec says", "written: frontier.csv, frontier.md"]


def test_the_steps_of_a_masking(printed: Printed) -> None:
    rounded = StepReport("table", "round", ("age", "[pay]"), {}, "none")
    costly = StepReport("table", "noise", (), {}, "none", costs={"age": cost(0.5), "pay": cost(0.123)})
    tables.show_masking("people.csv", Masked(12_345, False, [rounded, costly]))
    assert printed() == [
        "people.csv: 12,345 rows",
        "columns  technique  guarantee  cells changed",
        "age, [pay]  round  none  -",
        "-  noise  none  50%, 12.3%",
    ]
    tables.show_masking("people.csv", Masked(5, True, []))
    assert printed()[0] == "people.csv: 5 groups"


def test_a_few_changed_cells_are_not_none(printed: Printed) -> None:
    """0.0% was printed where a few cells of many changed, and 100.0% where a few did not."""
    changed = {name: cost(share) for name, share in (("a", 0.0002), ("b", 0.9998), ("c", 0.0), ("d", 1.0))}
    tables.show_masking(
        "people.csv", Masked(12_345, False, [StepReport("table", "noise", (), {}, "none", costs=changed)])
    )
    assert printed()[-1] == "-  noise  none  < 0.1%, > 99.9%, 0%, 100%"


def cost(changed: float) -> ColumnCost:
    return cast(ColumnCost, SimpleNamespace(changed=changed))


def test_the_ledger(printed: Printed) -> None:
    tables.show_ledger(
        [
            Entry(0, "2026-01-01", "release", "people", "v1", "", ""),
            Entry(1, "2026-01-02", "withdraw", "people", "v1", "", "", "[too] much"),
        ]
    )
    assert printed() == [
        "#  time  dataset  version  action  why",
        "0  2026-01-01  people  v1  release",
        "1  2026-01-02  people  v1  withdraw  [too] much",
    ]


def test_the_changes_between_two_releases(printed: Printed) -> None:
    tables.show_difference("v1", "v2", [])
    assert printed() == ["v1 and v2 tell the same of themselves"]
    changes = [
        Change("[people]", "released", 12_345, 12_346),
        Change("utility", "[auc]", 0.123456, None),
        Change("columns", "role", None, "[sensitive]"),
        Change("people", "error", 1_234.5678, 0.5),
    ]
    tables.show_difference("v1", "v2", changes)
    assert printed() == [
        "v1 and v2",
        "part  what  v1  v2",
        "[people]  released  12,345  12,346",
        "utility  [auc]  0.1235  -",
        "columns  role  -  [sensitive]",
        "people  error  1,235  0.5",
    ]
