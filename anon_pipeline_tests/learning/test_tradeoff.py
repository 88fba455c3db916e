"""The trade-off: each point is what a release with its setting would be, also one whose demand cannot be met."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.policy import anonymize_part, mean_loss, tree_of
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.keys import Key, seed_under
from anon_pipeline.learning import guide as guide_module
from anon_pipeline.learning import targets as targets_module
from anon_pipeline.learning import tradeoff as tradeoff_module
from anon_pipeline.learning.cells import StoredPeople
from anon_pipeline.learning.problem import PLAINLY, Fitting, Problem
from anon_pipeline.learning.tradeoff import TradeOffPoint, trade_off
from anon_pipeline.learning.utility import CrossValidation, measure_utility
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import people, policy, write_dataset
from anon_pipeline_tests.people import KEY

K, T = "privacy.k_anonymity.k", "privacy.t_closeness.t"
CLOSE = {"privacy.t_closeness.column": "ill"}


@pytest.fixture
def spec(tmp_path: Path) -> ReleaseSpec:
    content = policy()
    content["privacy"]["l_diversity"] = {"column": "ill", "l": 2}
    write_dataset(tmp_path / "people", people(600), content)
    people(600).to_csv(tmp_path / "people" / "everyone.csv", index=False)
    return ReleaseSpec.load(tmp_path / "people")


def points(
    engine: DuckDBEngine, spec: ReleaseSpec, settings: list[dict[str, Any]], key: Key = KEY, **how: Any
) -> list[TradeOffPoint]:
    table = spec.source_path.parent / "stored.parquet"
    types = engine.store_source(spec, table).types()
    return trade_off(StoredPeople(engine, table, spec, types), key, settings, **how)


@pytest.mark.long
@pytest.mark.parametrize("diverse", [False, True])
def test_less_is_kept_and_less_is_risked_as_k_grows(engine: DuckDBEngine, spec: ReleaseSpec, diverse: bool) -> None:
    if not diverse:
        spec = spec.replaced({"privacy": {"k_anonymity": {"k": 10}}})
    ks = [2, 5, 10, 25, 50, 100]
    found = [one.measured for one in points(engine, spec, [{K: k} for k in ks], with_utility=False)]
    for k, one in zip(ks, found, strict=True):
        assert one is not None
        assert one.smallest_class >= k
        assert 0 < one.mean_risk <= one.largest_risk <= 1 / k
        assert one.classes <= 600 / k
        assert (one.homogeneity["ill"] == 0) >= diverse
        assert one.suppressed == 0
    for k, (finer, coarser) in zip(ks, pairwise(found), strict=False):
        assert finer is not None and coarser is not None
        # With a demand every k has a ladder and a chance of its own, which decide where classes are few. Two people of
        # neighbouring ages show none, since any would be one person's: at k = 2 more is lost than at 5.
        assert diverse or k == 2 or finer.information_lost <= coarser.information_lost
        assert diverse or finer.classes > coarser.classes
    assert found[0] is not None and found[1] is not None and found[-1] is not None
    assert 3 * max(found[0].information_lost, found[1].information_lost) < found[-1].information_lost
    assert found[0].classes > 3 * found[-1].classes


@pytest.mark.long
def test_groups_that_look_alike_are_one_class_as_in_the_released_table(
    engine: DuckDBEngine, spec: ReleaseSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted: list[AnonymizerTree] = []

    def tree_that_is_kept(*given: Any) -> AnonymizerTree:
        fitted.append(tree_of(*given))
        return fitted[-1]

    monkeypatch.setattr(tradeoff_module, "tree_of", tree_that_is_kept)
    fewer = 0
    for number in range(12):
        (found,) = points(engine, spec, [{K: 5}], Key(bytes([number] * 32)), with_utility=False)
        assert found.measured is not None
        tree = fitted[-1]
        released = tree.transform(people(600)[spec.quasi_identifiers]).value_counts(dropna=False)
        assert (found.measured.classes, found.measured.smallest_class) == (len(released), released.min())
        fewer += len(released) < len(tree.sizes_)
        if fewer and number > 1:
            return
    raise AssertionError("under none of these keys two groups look alike")


@pytest.mark.long
def test_a_setting_costs_in_company_what_it_costs_alone(engine: DuckDBEngine, spec: ReleaseSpec) -> None:
    settings: list[dict[str, Any]] = [{K: 5}, {K: 5, "guide.spread": 0.0}, {K: 5, **CLOSE, T: 0.2}, {K: 30}]
    together = points(engine, spec, settings)
    assert together == [one for setting in settings for one in points(engine, spec, [setting])]
    measured = [one.measured for one in together]
    assert len(set(map(str, measured))) == len(settings)


@pytest.mark.long
def test_the_line_of_the_spec_is_marked(engine: DuckDBEngine, spec: ReleaseSpec) -> None:
    found = points(engine, spec, [{K: 5}, {K: 10}, {K: 10, "suppression.limit": 0.1}], with_utility=False)
    assert [one.current for one in found] == [False, True, False]
    assert all(one.utility is None and one.utility_refused is None for one in found)


@pytest.mark.long
def test_accuracy_is_measured_with_each_settings_own_tree(engine: DuckDBEngine, spec: ReleaseSpec) -> None:
    """By hand: the same cross-validation with an anonymizer built from the setting's own spec."""
    settings = [{K: 5}, {K: 60}, {K: 5, **CLOSE, T: 0.05, "suppression.limit": 0.3}]
    found = points(engine, spec, settings)
    table = spec.source_path.parent / "stored.parquet"
    types = engine.store_source(spec, table).types()
    sample = engine.sample(table, spec, types, spec.utility.sample)
    frame = sample.features.assign(ill=sample.target)
    for setting, point in zip(settings, found, strict=True):
        own = spec.replaced(setting)
        expected = measure_utility(
            Problem.within(
                frame,
                "ill",
                tradeoff_module.task_of(types["ill"]),
                {name: types[name] for name in spec.features},
                seed_under(KEY, spec.dataset),
            ),
            CrossValidation(spec.guide, 2),
            lambda part, guidance, own=own: anonymize_part(own, KEY, part, guidance),
        )
        assert point.utility == replace(expected, calibration=None)
    assert found[0].utility != found[1].utility
    assert found[0].utility != found[2].utility


@pytest.mark.long
def test_the_model_is_trained_once_however_many_settings(
    engine: DuckDBEngine, spec: ReleaseSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted: list[int] = []
    fit = guide_module.fit_parts
    for module in (guide_module, targets_module):
        monkeypatch.setattr(
            module, "fit_parts", lambda *given: fitted.extend(int(part.sum()) for part in given[2]) or fit(*given)
        )
    points(engine, spec, [{K: k} for k in (5, 10, 20, 40)])
    # For the release everybody, and without each of two folds; the same for each of two folds of the cross-validation.
    assert len(fitted) == 3 + 2 * 3
    assert sorted(fitted)[-1] == 600


@pytest.mark.long
def test_a_demand_that_cannot_be_met_is_a_line_and_no_crash(engine: DuckDBEngine, spec: ReleaseSpec) -> None:
    settings = [{K: 601}, {K: 10}, {"privacy.l_diversity.l": 3}, {K: 10, **CLOSE, T: 0.0}]
    found = points(engine, spec, settings)
    many, fine, diverse, close = found
    assert many.refused == "privacy.k_anonymity: the table has 600 people, fewer than k = 601; lower the demand"
    assert diverse.refused is not None and "ill has 2 distinct values in the whole table" in diverse.refused
    for refused in (many, diverse):
        assert refused.measured is refused.utility is refused.utility_refused is None
    assert fine.refused is None and fine.measured is not None and fine.utility is not None
    # t = 0 leaves one class of everybody, or a refusal; never a table that does not meet it
    assert close.refused is not None or (close.measured is not None and close.measured.classes == 1)


@pytest.mark.long
def test_a_refusal_in_a_training_part_leaves_the_rest_of_the_line(engine: DuckDBEngine, spec: ReleaseSpec) -> None:
    """Folds of 300 cannot have classes of 400, but the table can."""
    (point,) = points(engine, spec, [{K: 400}])
    assert point.measured is not None and point.measured.classes == 1
    assert point.utility is None and point.refused is None
    assert point.utility_refused == "in a training part: the table has 300 rows, fewer than k = 400"


@pytest.mark.long
def test_a_demand_on_a_population_holds_for_the_table_and_not_for_a_fold_of_it(
    engine: DuckDBEngine, spec: ReleaseSpec
) -> None:
    by_map = {"privacy.k_map.population": "everyone.csv"}
    plain, mapped, too_many = points(
        engine, spec, [{K: 5}, {K: 5, **by_map, "privacy.k_map.k": 60}, {**by_map, "privacy.k_map.k": 601}]
    )
    assert plain.measured is not None and mapped.measured is not None
    assert mapped.measured.smallest_class >= 60 > plain.measured.smallest_class
    assert mapped.utility == plain.utility is not None
    assert too_many.refused is not None


@pytest.mark.long
def test_the_numbers_are_those_of_the_tree_counted_row_by_row(engine: DuckDBEngine, spec: ReleaseSpec) -> None:
    """The classes are rebuilt from the shown rows of a tree fitted in the library, without cells from the engine."""
    free = spec.replaced({"privacy": {"k_anonymity": {"k": 4}}, "guide.model": "decision_tree"})
    (point,) = points(engine, free, [{K: 4}], with_utility=False)
    table = spec.source_path.parent / "stored.parquet"
    types = engine.store_source(free, table).types()
    counted = tradeoff_module._count(StoredPeople(engine, table, free, types), KEY, PLAINLY)
    tree = tree_of(free, KEY).fit_cells(counted.cells)
    frame = people(600)
    group = tree.apply(frame[free.quasi_identifiers])
    sizes = frame.groupby(group)["ill"].transform("size")
    alone = frame.groupby(group)["ill"].transform("nunique") == 1
    one = point.measured
    assert one is not None
    assert (one.classes, one.smallest_class) == (len(set(group)), sizes.min())
    assert one.homogeneity == {"ill": pytest.approx(alone.mean())}
    assert alone.mean() > 0
    assert one.largest_risk == pytest.approx((1 / sizes).max())
    assert one.mean_risk == pytest.approx((1 / sizes).mean())
    assert one.information_lost == mean_loss(tree.information_loss_)


@pytest.mark.long
def test_progress_counts_trees_and_a_line_is_plain_data_without_people(engine: DuckDBEngine, spec: ReleaseSpec) -> None:
    told: list[tuple[int, int]] = []
    found = points(engine, spec, [{K: 5}, {K: 10}], fitting=Fitting(progress=lambda *count: told.append(count)))
    assert told == [(done, 6) for done in range(1, 7)]
    text = json.dumps([one.as_dict() for one in found], allow_nan=False)
    assert not any(city in text for city in people()["city"].unique())
