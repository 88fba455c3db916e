"""What holds for every table of people: k of a kind, nobody lost, nobody's own value shown, the same every time."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.classes import loss_as_released
from anon_pipeline.anonymize.encoding import count_cells, learn_domain
from anon_pipeline.anonymize.recode import equivalence_classes, recoded_table
from anon_pipeline.errors import InputError
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.people import KEY, Table, tables

FORMS = st.sampled_from(["value", "range"])
SPREADS = st.sampled_from([0.0, 1.0])
few = settings(max_examples=times(40))


def fitted(table: Table, **parameters: object) -> AnonymizerTree:
    return AnonymizerTree(k=table.k, **parameters).fit(table.frame, table.guidance)  # type: ignore[arg-type]


def tuples(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    """Rows as texts, so that missing equals missing whatever stands for it."""
    return list(zip(*(["<NA>" if gone else str(v) for v, gone in zip(frame[c], frame[c].isna(), strict=True)]
                      for c in frame), strict=True))  # fmt: skip


@pytest.mark.long
@few
@given(tables(), FORMS, SPREADS)
def test_every_shown_tuple_is_shared_by_k_people(table: Table, form: str, spread: float) -> None:
    shown = fitted(table, form=form, spread=spread).transform(table.frame)
    sizes = shown.groupby(list(shown), dropna=False, observed=True).size()
    assert sizes.min() >= table.k
    assert sizes.sum() == len(shown) == len(table.frame)
    assert list(shown.columns) == list(table.frame.columns)


@pytest.mark.long
@few
@given(tables(), FORMS)
def test_the_sizes_told_are_the_sizes_counted(table: Table, form: str) -> None:
    ours = fitted(table, form=form)
    assert (np.bincount(ours.apply(table.frame)) == ours.sizes_).all()
    assert ours.sizes_.min() >= table.k
    assert (ours.classes_["class_size"] == ours.sizes_).all()
    assert all(0 <= lost <= 1 for lost in ours.information_loss_.values())


@pytest.mark.long
@few
@given(tables(), FORMS)
def test_a_release_has_lost_what_lies_within_rows_that_look_alike(table: Table, form: str) -> None:
    tree = fitted(table, form=form)
    learned = [learn_domain(name, table.frame[name]) for name in table.frame]
    codes = np.stack([code for _, code in learned], axis=1)
    cells, _ = count_cells(tuple(domain for domain, _ in learned), codes, table.guidance)
    recoded = recoded_table(tree.summaries_, form)
    class_of_cell, released_class = tree.partition_.apply(cells.codes), equivalence_classes(recoded)
    lost = loss_as_released(cells, class_of_cell, tree.information_loss_, released_class)
    alike = pd.factorize(pd.Series(tuples(recoded.to_pandas())))[0][tree.apply(table.frame)]
    for domain, code in learned:
        # A number is measured by its value, a category by whether it is another.
        if domain.positions is not None:
            positions = domain.positions
            if len(positions) and np.ptp(positions.astype(float)) < 1e-6 * np.abs(positions.astype(float)).max():
                continue  # the variance of such numbers is no longer exact
            known = [np.r_[np.nan, (positions - positions[:1]).astype(float)][code]]
        else:
            known = [(code == one).astype(float) for one in range(len(domain))]
        squares = [pd.Series(part[~np.isnan(part)]) for part in known]
        groups = [alike[~np.isnan(part)] for part in known]
        total = sum(((values - values.mean()) ** 2).sum() for values in squares)
        within = sum(
            ((values - values.groupby(group).transform("mean")) ** 2).sum()
            for values, group in zip(squares, groups, strict=True)
        )
        assert lost[domain.name] == pytest.approx(within / total if total > 1e-9 else 0.0, rel=1e-6, abs=1e-6)
        assert lost[domain.name] >= tree.information_loss_[domain.name] - 1e-9


@pytest.mark.long
@few
@given(tables(), FORMS)
def test_the_input_is_left_alone_and_twice_gives_the_same(table: Table, form: str) -> None:
    before = table.frame.copy(deep=True)
    ours = fitted(table, form=form)
    once = ours.transform(table.frame)
    pd.testing.assert_frame_equal(ours.transform(table.frame), once)
    pd.testing.assert_frame_equal(ours.fit(table.frame, table.guidance).transform(table.frame), once)
    pd.testing.assert_frame_equal(fitted(table, form=form).transform(table.frame.copy()), once)
    pd.testing.assert_frame_equal(table.frame, before)


@pytest.mark.long
@few
@given(tables(), FORMS, SPREADS)
def test_fitting_and_showing_at_once_is_one_after_the_other(table: Table, form: str, spread: float) -> None:
    both = AnonymizerTree(k=table.k, form=form, spread=spread)  # type: ignore[arg-type]
    shown = both.fit_transform(table.frame, table.guidance)
    pd.testing.assert_frame_equal(shown, fitted(table, form=form, spread=spread).transform(table.frame))
    pd.testing.assert_frame_equal(shown, both.transform(table.frame))


def test_who_is_suppressed_is_left_out_at_once_too() -> None:
    frame = pd.DataFrame({"age": [20] * 10 + [60] * 10 + [99] * 4}, index=range(100, 124))
    ill = pd.DataFrame({"ill": ["yes", "no"] * 10 + ["yes"] * 4})
    demands = [LDiversity(column="ill", l=2)]
    guidance = [0.1] * 10 + [0.5] * 10 + [0.9] * 4
    tree = AnonymizerTree(k=4, demands=demands, suppression=0.2, key=KEY)
    shown = tree.fit_transform(frame, guidance, ill)
    assert (tree.apply(frame) < 0).sum() == 4 and list(shown.index) == list(range(100, 120))
    pd.testing.assert_frame_equal(shown, tree.transform(frame))


@pytest.mark.long
@few
@given(tables(), FORMS, st.integers(0, 99))
def test_the_order_of_rows_means_nothing(table: Table, form: str, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(table.frame))
    shuffled = Table(table.frame.iloc[order], table.guidance[order], table.k)
    straight, other = (tuples(fitted(one, form=form).transform(one.frame)) for one in (table, shuffled))
    assert other == [straight[place] for place in order]


@pytest.mark.long
@few
@given(tables(), st.integers(0, 99))
def test_index_labels_mean_nothing(table: Table, seed: int) -> None:
    expected = tuples(fitted(table).transform(table.frame))
    n = len(table.frame)
    for labels in (np.random.default_rng(seed).permutation(n), np.arange(n) + 7, np.zeros(n, int), list("ab" * n)[:n]):
        frame = table.frame.set_axis(pd.Index(labels), axis=0)
        shown = AnonymizerTree(k=table.k).fit(frame, pd.DataFrame(table.guidance)).transform(frame)
        assert tuples(shown) == expected
        assert (shown.index == frame.index).all()


@pytest.mark.long
@few
@given(tables(), FORMS)
def test_a_stored_tree_is_the_same_tree(tmp_path_factory: pytest.TempPathFactory, table: Table, form: str) -> None:
    ours = fitted(table, form=form)
    file = tmp_path_factory.mktemp("tree") / "tree.json"
    ours.save(file)
    again = AnonymizerTree.load(file)
    pd.testing.assert_frame_equal(again.transform(table.frame), ours.transform(table.frame))
    pd.testing.assert_frame_equal(again.classes_, ours.classes_)
    assert again.information_loss_ == ours.information_loss_
    assert again.get_params() == ours.get_params()
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.long
@few
@given(st.data(), tables())
def test_unseen_people_get_an_existing_class(data: st.DataObject, table: Table) -> None:
    ours = fitted(table)
    existing = set(tuples(ours.transform(table.frame)))
    kinds = [name.split(" ")[0] for name in table.frame]
    other = data.draw(tables(kinds=kinds))
    unseen = pd.DataFrame({name: other.frame.iloc[:, [0]].squeeze(axis=1) for name in table.frame})
    try:
        group = ours.apply(unseen)
    except InputError:
        assert any(other.frame.dtypes.iloc[0] != kind for kind in table.frame.dtypes)  # a column of another kind
        return
    assert group.min() >= 0
    assert group.max() < len(ours.classes_)
    assert len(ours.transform(unseen)) == len(unseen)
    # The frame's own people, one at a time: a single row knows fewer values, and None alone has no type to show a "*".
    # A whole number beside a missing one is a float.
    existing = {alike(row) for row in existing}
    for place in range(min(4, len(table.frame))):
        assert alike(tuples(ours.transform(table.frame.iloc[[place]]))[0]) in existing


def alike(row: tuple[str, ...]) -> tuple[str, ...]:
    """A row of `tuples` that does not depend on how a column stores what its classes show."""
    return tuple(str(float(one)) if re.fullmatch(r"-?\d+", one) else one.replace("*", "<NA>") for one in row)


# ------------------------------------------------------- no value is one person's


def as_number(values: pd.Series) -> np.ndarray:
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        naive = values.dt.tz_convert("UTC").dt.tz_localize(None) if values.dt.tz is not None else values
        return naive.to_numpy("datetime64[us]").astype(np.int64)
    return values.to_numpy(np.int64 if pd.api.types.is_integer_dtype(values.dtype) else np.float64)


@pytest.mark.long
@settings(max_examples=times(100))
@given(tables(), st.sampled_from([None, 0.1, 0.25, 1.0, 5.0, 1000.0]))
def test_no_shown_value_is_one_persons(table: Table, grid: float | None) -> None:
    from anon_pipeline.anonymize.encoding import column_type
    from anon_pipeline.anonymize.recode import default_grid
    from anon_pipeline.spec import ColumnType

    frame = table.frame
    grids = {} if grid is None else dict.fromkeys(
        [n for n in frame if column_type(frame[n]) is ColumnType.NUMERIC and (frame[n].abs() < 1e12).all()], grid
    )  # fmt: skip
    ours = fitted(table, grids=grids)
    group = ours.apply(frame)
    for domain in ours.domains_:
        name = domain.name
        step = (grids.get(name) or default_grid(domain, table.k)) if domain.ordered else 0
        for j, told in ours.classes_.iterrows():
            column = frame[name][group == j]
            known, missing = column.dropna(), int(column.isna().sum())
            if domain.ordered:
                check_number(told, name, known, missing, step, frame[name].isna().sum() >= table.k)
            else:
                everybody = frame[name].astype(object).map(str, na_action="ignore").value_counts().to_dict()
                named = {one for one, people in everybody.items() if people >= table.k}
                named |= {None} if frame[name].isna().sum() >= table.k else set()
                texts = known.astype(object).map(str)
                check_category(told[name], told[f"{name}_values"], texts, missing, named)


def check_number(told: pd.Series, name: str, known: pd.Series, missing: int, step: float, missing_named: bool) -> None:
    value, low, high = told[name], told[f"{name}_low"], told[f"{name}_high"]
    untold = missing == 1 or (missing > 0 and not missing_named)
    assert told[f"{name}_missing"] is pd.NA if untold else told[f"{name}_missing"] == (missing > 0)
    if len(known) < 2:  # an interval would enclose one person
        assert pd.isna(low)
        assert pd.isna(high)
        assert pd.isna(value)
        return
    numbers = as_number(known)
    if any(isinstance(one, pd.Timestamp) for one in (low, high, value)):
        low, high, value = (
            one if pd.isna(one) else int(one.to_datetime64().astype("datetime64[us]").astype(np.int64))
            for one in (low, high, value)
        )
    dust = 4e-15 * max(abs(float(numbers.min())), abs(float(numbers.max())))
    assert pd.isna(low) or low <= numbers.min() + dust
    assert pd.isna(high) or high >= numbers.max() - dust
    if pd.isna(value):
        return
    assert (pd.isna(low) or low <= value) and (pd.isna(high) or value <= high)
    above = numbers - value  # halfway between two grid points a value goes to the upper one
    bearers = ((above >= -step / 2 - dust) & (above < step / 2 * (1 - 1e-9) - dust)).sum()
    # Of huge numbers, floats do not tell what lies halfway: 1e12 + .498 is as far from 1e12 as from 1e12 + 1.
    surely, perhaps = ((np.abs(above) < half).sum() for half in (step / 2 - dust, step / 2 + dust))
    untold = dust > 1e-6 * step and surely < perhaps
    # Nor of -.3 and steps of .2: by the difference it is a tie, which goes up, and by the quotient it lies below one.
    nobodys = (np.floor(numbers / step + 0.5) != np.rint(value / step)).all()
    # A number may stand for all who lie between it and the next one: -.4 and -.3 are both shown as -.4.
    beside = (np.abs(above) <= step + dust).sum()
    assert bearers != 1 or numbers.min() < value < numbers.max() or step / 2 <= dust or untold or nobodys or beside >= 2
    # A multiple of the grid, as far as floats can tell.
    quotient = value / step
    assert abs(quotient - round(quotient)) <= 1e-9 * max(1.0, abs(quotient))


def check_category(
    value: str | None, told: list[str | None], known: pd.Series, missing: int, named: set[str | None]
) -> None:
    counts = known.value_counts()
    bearers = {**counts.to_dict(), None: missing}
    value = None if pd.isna(value) else value
    assert value == "*" or bearers[value] >= 2
    assert all(one == "*" or bearers[one] >= 2 for one in told)
    # And the set is whole: whoever is not listed is behind the mark.
    alone = sum(count == 1 or (count > 0 and one not in named) for one, count in bearers.items())
    common = [one for one, count in bearers.items() if count >= 2 and one in named]
    assert set(told) == set(common) | ({"*"} if alone else set())


@pytest.mark.long
@few
@given(tables())
def test_the_frame_shows_what_the_class_table_says(table: Table) -> None:
    ours = fitted(table)
    shown = ours.transform(table.frame)
    group = ours.apply(table.frame)
    for domain in ours.domains_:
        column, told = shown[domain.name], ours.classes_[domain.name].iloc[group].reset_index(drop=True)
        if domain.ordered:
            assert (column.isna().to_numpy() == told.isna().to_numpy()).all()
            here = column.notna().to_numpy()
            np.testing.assert_allclose(
                as_number(column[here]).astype(float), as_number(told[here]).astype(float), rtol=1e-6
            )
        else:
            told = told.where(~(told.eq("*") & column.isna().to_numpy()), None)
            assert [None if pd.isna(v) else str(v) for v in column] == [None if pd.isna(v) else v for v in told]
