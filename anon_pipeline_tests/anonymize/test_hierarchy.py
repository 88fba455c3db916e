"""Hierarchies: what is read, which label a class shows, and that a strict one is never cut through."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.anonymize import anonymizer
from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.hierarchy import Calendar, Hierarchy, Listed, Prefixes
from anon_pipeline.anonymize.tree import SplitTree
from anon_pipeline.errors import InputError
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline_tests.examples import times

few = settings(max_examples=times(30))

EDUCATION = """\
Preschool;Primary;School;*
9th;Secondary;School;*
12th;Secondary;School;*
Bachelors;Undergraduate;Higher;*
"Masters";Graduate;Higher;*
Doctorate;Graduate;Higher;*
"""


def written(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    path = folder / "education.csv"
    path.write_bytes(text.encode(encoding))
    return path


@dataclass(frozen=True)
class People:
    """A table with one column of a hierarchy, the paths of its values, guidance and k."""

    frame: pd.DataFrame
    paths: dict[str, tuple[str, ...]]
    guidance: np.ndarray
    k: int


@st.composite
def people(draw: st.DrawFn) -> People:
    """Hierarchies of up to 12 values and four levels, in which names stand in several branches."""
    m, n = draw(st.integers(1, 12)), draw(st.integers(4, 80))
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    height = draw(st.integers(1, 3))
    paths = {}
    for value in range(m):
        below = [str(generator.integers(0, 3)) for _ in range(height)]
        # The name of a node tells its own number only, so that it may stand below two nodes.
        paths[f"v{value:02d}"] = (*(f"n{one}" for one in below), *draw(st.sampled_from([(), ("*",)])))
    longest = max(map(len, paths.values()))
    paths = {value: (path if len(path) == longest else (*path, "*")) for value, path in paths.items()}
    column = pd.Series(generator.choice(sorted(paths), n)).astype(object)
    column[generator.random(n) < draw(st.sampled_from([0.0, 0.2]))] = None
    frame = pd.DataFrame({"town": column, "age": generator.integers(0, draw(st.sampled_from([1, 4, 40])), n)})
    return People(frame, paths, generator.random((n, draw(st.integers(1, 2)))), draw(st.integers(2, max(2, n // 3))))


def fitted(table: People, strict: bool, **more: object) -> AnonymizerTree:
    hierarchies = {"town": Listed(table.paths, strict)}
    tree = AnonymizerTree(k=min(table.k, len(table.frame)), hierarchies=hierarchies, form="range", **more)  # type: ignore[arg-type]
    return tree.fit(table.frame, table.guidance)


def lowest(paths: list[tuple[str, ...]]) -> tuple[int, str]:
    """The lowest level that the values of these paths (value first) share with all that is above it, and its name."""
    for level in range(len(paths[0])):
        if len({path[level:] for path in paths}) == 1:
            return level, paths[0][level]
    return len(paths[0]), "*"


def lowest_named(table: People, known: pd.Series, k: int) -> tuple[object, str]:
    """The same, of nodes that k people of the table bear."""
    everybody = [(value, *table.paths[value]) for value in table.frame["town"].dropna()]
    paths = [(value, *table.paths[value]) for value in known]
    for level in range(len(paths[0])):
        nodes = {path[level:] for path in paths}
        if len(nodes) == 1 and sum(path[level:] in nodes for path in everybody) >= k:
            return level, paths[0][level]
    several = len({path[-1] for path in table.paths.values()}) > 1
    return (len(paths[0]) if several and len(everybody) >= k else pd.NA), "*"


@few
@given(people(), st.booleans())
def test_the_label_is_that_of_the_lowest_node_that_covers_the_class(table: People, strict: bool) -> None:
    tree = fitted(table, strict)
    shown = tree.transform(table.frame)["town"]
    for group, members in table.frame.groupby(tree.apply(table.frame)):
        known, missing = members["town"].dropna(), int(members["town"].isna().sum())
        label, level = "", pd.NA
        if len(known) == 1:
            label = "*"
        elif len(known):
            level, label = lowest_named(table, known, tree.k)
        missing_named = table.frame["town"].isna().sum() >= tree.k
        rest = "missing" if missing > 1 and missing_named else "*"
        expected = f"{label} or {rest}" if missing and label else rest if missing else label
        assert set(shown[members.index]) == {expected} == {tree.classes_["town_label"][group]}
        assert tree.classes_["town_level"][group] is level or tree.classes_["town_level"][group] == level


def cuts(tree: SplitTree, codes: np.ndarray, column: int) -> list[tuple[set[int], set[int]]]:
    """The codes on both sides of every split of a column that parts somebody, found by walking everybody down."""
    found = []
    todo = [(0, np.arange(len(codes)))]
    while todo:
        node, rows = todo.pop()
        axis = tree.feature[node]
        if axis < 0 or not len(rows):
            continue
        feature = tree.features[axis]
        left = feature.rank[codes[rows, feature.column]] <= tree.threshold[node]
        if feature.column == column and left.any() and not left.all():
            found.append((set(codes[rows[left], column].tolist()), set(codes[rows[~left], column].tolist())))
        todo += [(int(tree.left[node]), rows[left]), (int(tree.right[node]), rows[~left])]
    return found


def whole_nodes(paths: list[tuple[str, ...]], left: set[int], right: set[int]) -> bool:
    """Whether a split parts only whole nodes that lie directly below the lowest node which covers the group."""
    both = left | right
    level = len(paths[0]) - 1 if 0 in both else lowest([paths[code - 1] for code in both])[0]
    sides: dict[object, set[bool]] = {}
    for code in both:
        child = None if code == 0 else paths[code - 1][level - 1 :]
        sides.setdefault(child, set()).add(code in left)
    return not left & right and all(len(one) == 1 for one in sides.values())


@few
@given(people(), st.sampled_from([0.0, 1.0]), st.booleans())
def test_a_strict_hierarchy_is_never_cut_through(table: People, spread: float, diverse: bool) -> None:
    hierarchies = {"town": Listed(table.paths, strict=True)}
    ill = pd.DataFrame({"ill": ["yes", "no"] * len(table.frame)}).iloc[: len(table.frame)]
    demands = [LDiversity(column="ill", l=2)] if diverse else []
    tree = AnonymizerTree(k=min(table.k, len(table.frame)), spread=spread, hierarchies=hierarchies, demands=demands)
    tree.fit(table.frame, table.guidance, ill)
    domain = tree.domains_[0]
    codes = np.stack([anonymizer.encoding.apply_domain(one, table.frame[one.name]) for one in tree.domains_], axis=1)
    paths = [(value, *table.paths[value]) for value in domain.values]
    if len({path[-1] for path in table.paths.values()}) > 1:
        paths = [(*path, "*") for path in paths]
    for left, right in cuts(tree.partition_.tree, codes, 0):
        assert whole_nodes(paths, left, right)
    assert tree.sizes_.min() >= tree.k and tree.sizes_.sum() == len(table.frame)


def test_without_strict_the_tree_cuts_where_it_likes_and_with_it_nowhere_else() -> None:
    """Guidance puts v0 with v2 and v1 with v3; the hierarchy puts v0 with v1."""
    frame = pd.DataFrame({"town": ["v0", "v1", "v2", "v3"] * 10})
    guidance = [0.1, 0.9, 0.1, 0.9] * 10
    paths = {"v0": ("a", "*"), "v1": ("a", "*"), "v2": ("b", "*"), "v3": ("b", "*")}
    free = AnonymizerTree(k=10, spread=0, hierarchies={"town": Listed(paths)}).fit(frame, guidance)
    strict = AnonymizerTree(k=10, spread=0, hierarchies={"town": Listed(paths, strict=True)}).fit(frame, guidance)
    assert sorted(map(list, free.classes_["town_values"])) == [["v0", "v2"], ["v1", "v3"]]
    assert len(strict.classes_) == 1  # a and b are alike to the model, and neither may be cut before they are parted
    told = AnonymizerTree(k=10, hierarchies={"town": Listed(paths, strict=True)}).fit(frame, guidance)
    assert sorted(told.classes_["town_label"]) == ["v0", "v1", "v2", "v3"]


@pytest.mark.long
@few
@given(people(), st.booleans())
def test_a_stored_tree_and_shuffled_people_show_the_same(table: People, strict: bool) -> None:
    tree = fitted(table, strict)
    shown = tree.transform(table.frame)
    order = np.random.default_rng(0).permutation(len(table.frame))
    again = fitted(People(table.frame.iloc[order], table.paths, table.guidance[order], table.k), strict)
    pd.testing.assert_frame_equal(again.transform(table.frame), shown)
    pd.testing.assert_frame_equal(again.classes_, tree.classes_)


def test_a_stored_tree_needs_no_hierarchy(tmp_path: Path) -> None:
    frame = pd.DataFrame({"town": ["v0", "v1", "v2", "v3"] * 5, "size": ["low", "high"] * 10})
    paths = {"v0": ("a", "*"), "v1": ("a", "*"), "v2": ("b", "*"), "v3": ("b", "*")}
    tree = AnonymizerTree(
        k=5, hierarchies={"town": Listed(paths, True)}, levels={"size": ["low", "high"]}, form="range"
    ).fit(frame)
    tree.save(tmp_path / "tree.json")
    stored = AnonymizerTree.load(tmp_path / "tree.json")
    pairs = zip(stored.partition_.tree.features, tree.partition_.tree.features, strict=True)
    assert all(np.array_equal(one.within, other.within) for one, other in pairs)  # type: ignore[arg-type]
    pd.testing.assert_frame_equal(stored.transform(frame), tree.transform(frame))
    pd.testing.assert_frame_equal(stored.classes_, tree.classes_)


def test_a_file_as_arx_writes_it_is_read(tmp_path: Path) -> None:
    frame = pd.DataFrame({"education": ["9th", "12th", "Masters", "Doctorate", "Bachelors", "Preschool"] * 4})
    guidance = [0.1, 0.1, 0.9, 0.9, 0.5, 0.5] * 4
    for text in (EDUCATION, "\ufeff" + EDUCATION, EDUCATION.replace("\n", "\r\n"), "\n" + EDUCATION + "\n"):
        listed = Listed.read(written(tmp_path, text))
        tree = AnonymizerTree(k=8, spread=0, hierarchies={"education": listed}, form="range").fit(frame, guidance)
        assert sorted(set(tree.transform(frame)["education"])) == ["*", "Graduate", "Secondary"]
        assert sorted(tree.classes_["education_level"]) == [1, 1, 3]


def test_numbers_are_found_however_they_are_written(tmp_path: Path) -> None:
    lines = "17;young;*\n18.0;young;*\n60;old;*\n61;old;*\nnobody;old;*\n"
    listed = Listed.read(written(tmp_path, lines))
    for number in (int, float):
        frame = pd.DataFrame({"age": pd.Series([17, 18, 60, 61] * 3, dtype=number)})
        tree = AnonymizerTree(k=6, hierarchies={"age": listed}).fit(frame, [0.1, 0.1, 0.9, 0.9] * 3)
        assert sorted(tree.classes_["age_label"]) == ["old", "young"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("a,b,*\nc,b,*\n", "line 1 has a value and no level"),
        ("a;b;*\nc;*\n", "line 2 has 1 levels, and the first line 2"),
        ("secret;b;*\nc;b;*\nsecret;d;*\n", "line 3 places a value that another line places elsewhere"),
    ],
)
def test_a_file_that_is_no_hierarchy_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as raised:
        Listed.read(written(tmp_path, text))
    assert "education.csv" in str(raised.value) and "secret" not in str(raised.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere.csv: cannot be read"):
        Listed.read(tmp_path / "nowhere.csv")
    with pytest.raises(InputError, match="no CSV file in UTF-8"):
        Listed.read(written(tmp_path, "Łódź;*\n", "utf-16"))


def test_values_that_a_file_lacks_are_counted_and_not_named(tmp_path: Path) -> None:
    frame = pd.DataFrame({"education": ["9th", "12th", "secret", "secret", "hidden", None]})
    listed = Listed.read(written(tmp_path, EDUCATION))
    with pytest.raises(
        InputError, match=r"columns.education.hierarchy: 2 of the column's 4 values \(of 3 people\)"
    ) as raised:
        AnonymizerTree(k=2, hierarchies={"education": listed}).fit(frame)
    assert "secret" not in str(raised.value) and "hidden" not in str(raised.value)


@few
@given(st.lists(st.text("0123", min_size=1, max_size=5), min_size=4, max_size=40), st.booleans())
def test_a_prefix_label_is_the_longest_listed_prefix_that_all_share(codes: list[str], strict: bool) -> None:
    lengths = (5, 3, 2)
    tree = AnonymizerTree(k=4, hierarchies={"zip": Prefixes(lengths, strict)}, form="range")
    frame = pd.DataFrame({"zip": codes})
    tree.fit(frame)
    for group, members in frame.groupby(tree.apply(frame)):
        forms = [[code, *(code[:length] + "*" * (len(code) - length) for length in lengths)] for code in members["zip"]]
        shared = [one[0] for one in zip(*forms, strict=True) if len(set(one)) == 1]
        assert tree.classes_["zip_label"][group] == (shared[0] if shared else "*")


@pytest.mark.long
@few
@given(st.lists(st.integers(-4000, 20_000), min_size=4, max_size=60), st.booleans())
def test_a_calendar_label_is_the_shortest_period_of_all_or_the_years(days: list[int], strict: bool) -> None:
    moments = pd.Series(pd.to_datetime(np.array(days), unit="D"))
    frame = pd.DataFrame({"born": moments})
    tree = AnonymizerTree(k=4, hierarchies={"born": Calendar(strict)}, form="range").fit(frame)
    for group, members in frame.groupby(tree.apply(frame)):
        expected = "*"
        for period in (days_of, months_of, quarters_of, years_of):
            (name, *others), everybody = period(members["born"]).unique(), period(moments)
            if not others and (everybody == name).sum() >= 4:
                expected = name
                break
        else:
            expected = years(moments.dt.year, members["born"].dt.year, 4)
        assert set(tree.transform(members)["born"]) == {expected}
        assert tree.classes_["born_label"][group] == expected


def days_of(born: pd.Series) -> pd.Series:
    return born.dt.strftime("%Y-%m-%d")


def months_of(born: pd.Series) -> pd.Series:
    return born.dt.strftime("%Y-%m")


def quarters_of(born: pd.Series) -> pd.Series:
    return born.dt.year.astype(str) + " Q" + born.dt.quarter.astype(str)


def years_of(born: pd.Series) -> pd.Series:
    return born.dt.year.astype(str)


def years(everybody: pd.Series, some: pd.Series, k: int) -> str:
    """The years around those of some people that k people have; no end where fewer lie beyond the last of them."""
    counts = everybody.value_counts()
    named = sorted(counts.index[counts >= k])
    lows = named[1:] if named and everybody.min() < named[0] else named
    highs = named[:-1] if named and everybody.max() > named[-1] else named
    low = max((one for one in lows if one <= some.min()), default=None)
    high = min((one for one in highs if one >= some.max()), default=None)
    if low is None or high is None:
        return f"≤ {high}" if high is not None else f"≥ {low}" if low is not None else "*"
    return f"{low}" if low == high else f"{low} .. {high}"


@pytest.mark.parametrize(
    ("hierarchy", "sentence"),
    [
        (Prefixes((2,)), "prefixes are of texts"),
        (Calendar(), "the calendar is of dates"),
    ],
)
def test_a_hierarchy_that_does_not_suit_its_column_is_refused(hierarchy: Hierarchy, sentence: str) -> None:
    with pytest.raises(InputError, match=rf"columns.age.hierarchy: {sentence}"):
        AnonymizerTree(k=2, hierarchies={"age": hierarchy}).fit(pd.DataFrame({"age": [1, 2, 3, 4]}))


def test_a_column_that_does_not_exist_is_named() -> None:
    with pytest.raises(InputError, match="town: has levels or a hierarchy, and is no quasi-identifier"):
        AnonymizerTree(k=2, hierarchies={"town": Calendar()}).fit(pd.DataFrame({"age": [1, 2, 3, 4]}))


def test_texts_of_very_many_values_need_a_hierarchy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anonymizer, "MOST_TEXTS", 40)
    frame = pd.DataFrame({"zip": [f"{10000 + one // 4}" for one in range(200)]})
    with pytest.raises(InputError, match=r"zip has 50 different texts in 200 rows.*columns.zip.hierarchy"):
        AnonymizerTree(k=5).fit(frame)
    assert AnonymizerTree(k=5, hierarchies={"zip": Prefixes((4, 3), True)}).fit(frame).sizes_.min() >= 5


@pytest.mark.parametrize(
    ("days", "label"),
    [
        (["2020-01-31", "2020-03-31"], "2020 Q1"),
        (["2020-10-01", "2020-12-31"], "2020 Q4"),
        (["2020-03-31", "2020-04-01"], "2020"),
        (["2020-02-01", "2020-02-29"], "2020-02"),
        (["2019-12-31", "2020-01-01"], "*"),  # neither year is that of eight people
    ],
)
def test_periods_end_where_the_calendar_ends_them(days: list[str], label: str) -> None:
    frame = pd.DataFrame({"born": pd.to_datetime(days * 4)})
    assert AnonymizerTree(k=8, hierarchies={"born": Calendar()}).fit(frame).classes_["born_label"].tolist() == [label]


@pytest.mark.parametrize(
    ("codes", "label"), [(["12345", "12399"], "123**"), (["12345", "12999"], "12***"), (["12345", "1239"], "*")]
)
def test_what_a_prefix_leaves_out_is_starred(codes: list[str], label: str) -> None:
    frame = pd.DataFrame({"zip": codes * 4})
    tree = AnonymizerTree(k=8, hierarchies={"zip": Prefixes((5, 3, 2))}).fit(frame)
    assert tree.classes_["zip_label"].tolist() == [label]


def test_a_root_stands_over_all_tops_of_the_file_though_the_column_lacks_some() -> None:
    frame = pd.DataFrame({"town": ["v0", "v1"] * 4})
    paths = {"v0": ("a",), "v1": ("a",), "v2": ("b",)}
    nodes = AnonymizerTree(k=4, hierarchies={"town": Listed(paths)}).fit(frame).domains_[0].nodes
    assert nodes is not None and nodes.labels == (("a",), ("*",))
