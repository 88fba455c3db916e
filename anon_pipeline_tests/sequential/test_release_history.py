"""The private memory of who was in which class: keyed, closed to others, complete, and able to forget."""

import json
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.release import ledger
from anon_pipeline.sequential import release_history
from anon_pipeline.sequential.guarantees import ABSENT, intersection
from anon_pipeline.sequential.republication import Routing
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import policy
from anon_pipeline_tests.people import write_spec
from anon_pipeline_tests.trees import tree_over

IDS = pa.array([f"person {number}" for number in range(6)])


def spec(window: int = 12) -> ReleaseSpec:
    content = policy()
    content["columns"]["id"] = {"role": "identifier"}
    return ReleaseSpec.model_validate(
        content | {"person": "id", "across_releases": {"k": 2, "window": window}, "privacy": {"k_anonymity": {"k": 2}}}
    )


def batch(identifiers: pa.Array, classes: list[int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([identifiers, pa.array(classes, pa.int64())], names=["id", "class"])


def publish(
    home: Home, version: str, identifiers: pa.Array, classes: list[int], followed: bool = True, made_from: str = ""
) -> None:
    """What stays of a release: its manifest, its ledger line and, where people are followed, its members."""
    folder = home.releases / "people" / version
    folder.mkdir(parents=True)
    manifest = {"rows": {"released": len(classes)}, "across_releases": {"k": 2} if followed else None}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    ledger.append(home, ledger.PUBLISH, "people", version, "0" * 64)
    if followed:
        scratch = home.private_folder("scratch")
        members = scratch / "members.parquet"
        release_history.write([batch(identifiers, classes)], release_history.key(home, "people"), members)
        Routing(tree_over(1), ()).save(scratch / "routing.json")
        release_history.remember(home, "people", version, members, scratch / "routing.json", made_from)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").prepare()


@pytest.mark.long
def test_a_hash_depends_on_the_key_and_on_nothing_else() -> None:
    one, other = (release_history.hashed(IDS, key) for key in (b"a" * 32, b"b" * 32))
    assert len(set(one) | set(other)) == 12 and (one >= 0).all()
    assert release_history.hashed(IDS.take(pa.array([3, 0])), b"a" * 32).tolist() == [one[3], one[0]]
    assert release_history.hashed(IDS.dictionary_encode(), b"a" * 32).tolist() == one.tolist()
    numbers = pa.array(range(200_000))
    assert len(np.unique(release_history.hashed(numbers, b"a" * 32))) == 200_000


def test_the_memory_is_for_its_owner_only_and_names_nobody(home: Home) -> None:
    publish(home, "a" * 12, IDS, [0, 0, 0, 1, 1, 1])
    files = [file for file in (home.private / "people").rglob("*") if file.is_file()]
    assert {file.name for file in files} == {"key", "made_from", "members.parquet", "routing.json"}
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert b"person 1" not in file.read_bytes()


def test_cohorts_and_who_is_gone(home: Home) -> None:
    publish(home, "a" * 12, IDS, [0, 0, 0, 1, 1, 1])
    publish(home, "b" * 12, IDS.slice(0, 5), [7, 7, 7, 7, 7])
    window = release_history.window(home, spec())
    people = release_history.hashed(pa.array(["person 0", "person 1", "person 3", "somebody else"]), window_key(home))
    history, departed = window.histories(people)
    assert history[0] == history[1] != history[2] != 0 and history[3] == 0
    assert departed.sum() == 3 and departed[history[0]] == 1 and departed[history[2]] == 1 and departed[0] == 0
    assert [one.classes_of(people).tolist() for one in window.members] == [[0, 0, 1, ABSENT], [7, 7, 7, ABSENT]]


def test_the_newest_class_of_a_cohort_goes_by_the_number_of_the_cohort(home: Home) -> None:
    publish(home, "a" * 12, IDS, [0, 0, 0, 1, 1, 1])
    publish(home, "b" * 12, IDS.slice(1, 4), [7, 8, 8, 9])
    window = release_history.window(home, spec())
    for table in (IDS.slice(0, 6), pa.concat_arrays([IDS.slice(0, 3), pa.array(["a newcomer"])])):
        people = release_history.hashed(table, window_key(home))
        history, _ = window.histories(people)
        newest = window.members[-1].classes_of(people)
        assert window.newest_classes()[history].tolist() == newest.tolist()
    assert release_history.Window((), ()).newest_classes().tolist() == [ABSENT]


def window_key(home: Home) -> bytes:
    return release_history.key(home, "people")


def test_the_window_holds_the_newest_releases_and_names_those_not_followed(home: Home) -> None:
    publish(home, "a" * 12, IDS, [0] * 6)
    publish(home, "b" * 12, IDS, [0] * 6, followed=False)
    publish(home, "c" * 12, IDS, [0] * 6)
    assert [one.version[0] for one in release_history.window(home, spec()).members] == ["a", "c"]
    assert [one[0] for one in release_history.window(home, spec()).unknown] == ["b"]
    assert [one.version[0] for one in release_history.window(home, spec(window=2)).members] == ["c"]


def test_another_list_makes_another_release(home: Home, tmp_path: Path) -> None:
    """The policy, which is published, does not tell them apart."""
    towns = tmp_path / "towns.csv"
    made_from = []
    for group in ("south", "west"):
        towns.write_text(f"Ulm;{group};*\n")
        columns = {"town": {"role": "quasi_identifier", "hierarchy": {"file": "towns.csv"}}, "ill": "sensitive"}
        listed = write_spec(tmp_path, columns, "people.csv", target="ill")
        made_from.append(release_history.origin(home, listed, "one"))
    assert made_from[0] != made_from[1]


@pytest.mark.parametrize(("what", "now"), [("code_hash", "another"), ("packages", {"scikit-learn": "9.9"})])
def test_what_another_version_makes_is_another_release(
    home: Home, monkeypatch: pytest.MonkeyPatch, what: str, now: object
) -> None:
    """It was made without a look at the newest release, whose classes it crossed: it was refused at every run."""
    before = release_history.origin(home, spec(), "one")
    assert release_history.origin(home, spec(), "one") == before
    monkeypatch.setattr(release_history, what, lambda: now)
    assert release_history.origin(home, spec(), "one") != before


def test_a_release_is_not_held_against_itself(home: Home) -> None:
    """Made again from the same people under the same policy, it is made beside the releases before it alone."""
    first, second, other = (release_history.origin(home, spec(), content) for content in ("one", "two", "three"))
    publish(home, "a" * 12, IDS, [0] * 6, made_from=first)
    publish(home, "b" * 12, IDS, [0] * 6, made_from=second)

    def beside(made_from: str | None, window: int = 12) -> list[str]:
        return [one.version[0] for one in release_history.window(home, spec(window=window), made_from).members]

    assert beside(second) == beside(second, window=2) == ["a"] and beside(None) == ["a", "b"]
    assert beside(first) == beside(other) == ["a", "b"], "people as in an older release are made into a new one"
    assert release_history.origin(home, spec(window=3), "two") != second
    ledger.append(home, ledger.WITHDRAW, "people", "b" * 12, "0" * 64, "why")
    assert beside(second) == ["a", "b"], "a withdrawn release never comes back, and its readers still have it"


def test_of_several_releases_the_newest_is_the_one_that_may_be_made_again(home: Home) -> None:
    origins = [release_history.origin(home, spec(), content) for content in ("one", "two", "three")]
    for version, made_from in zip("abc", origins, strict=True):
        publish(home, version * 12, IDS, [0] * 6, made_from=made_from)
    beside = [[one.version[0] for one in release_history.window(home, spec(), origin).members] for origin in origins]
    assert beside == [["a", "b", "c"], ["a", "b", "c"], ["a", "b"]]


def test_a_release_that_returned_counts_from_its_return(home: Home) -> None:
    """Its readers have it as the newest: of two releases side by side the one before the return is the older."""
    origins = {version: release_history.origin(home, spec(window=2), version) for version in "abc"}
    for version in "ab":
        publish(home, version * 12, IDS, [0] * 6, made_from=origins[version])

    def beside(made_from: str | None = None, window: int = 2) -> list[str]:
        return [one.version[0] for one in release_history.window(home, spec(window=window), made_from).members]

    before = [beside(origins["a"], window) for window in (2, 3)]
    ledger.append(home, ledger.CURRENT, "people", "a" * 12, "0" * 64)
    assert beside() == beside(origins["c"]) == ["a"] and beside(window=3) == ["a", "b"]
    assert [beside(origins["a"], window) for window in (2, 3)] == before == [["b"], ["a", "b"]], "made again as it was"
    assert beside(origins["b"]) == beside(origins["b"], window=3) == ["a"]
    publish(home, "c" * 12, IDS, [0] * 6, made_from=origins["c"])
    assert beside() == ["c"] and beside(window=3) == ["a", "c"] and beside(window=4) == ["a", "b", "c"]
    assert beside(origins["c"]) == ["a"]


def test_a_release_that_is_current_again_since_the_next_was_withdrawn_counts(home: Home) -> None:
    """Its readers have it as the newest, and others still have the one that was withdrawn."""
    origins = {version: release_history.origin(home, spec(window=2), version) for version in "ab"}
    for version in "ab":
        publish(home, version * 12, IDS, [0] * 6, made_from=origins[version])
    ledger.append(home, ledger.WITHDRAW, "people", "b" * 12, "0" * 64, "a mistake")

    def beside(made_from: str | None = None) -> list[str]:
        return [one.version[0] for one in release_history.window(home, spec(window=2), made_from).members]

    assert beside() == beside(origins["b"]) == ["a", "b"]
    assert beside(origins["a"]) == ["b"], "made again as it was"
    publish(home, "c" * 12, IDS, [0] * 6)
    assert beside() == ["c"]


def test_people_beyond_all_hashes_of_a_release_are_not_in_it() -> None:
    member = release_history.Membership("a", np.array([10, 20, 30]), np.array([0, 1, 1]))
    assert member.classes_of(np.array([5, 10, 15, 30, 31])).tolist() == [ABSENT, 0, ABSENT, 1, ABSENT]
    nobody = release_history.Membership("a", np.array([], dtype=np.int64), np.array([], dtype=np.int64))
    assert nobody.classes_of(np.array([5])).tolist() == [ABSENT]


def test_who_is_known_is_in_the_history_of_some_release(home: Home) -> None:
    asked = pa.array(["person 5", None, "person 0", "a stranger"])
    assert release_history.known(home, "people", asked).tolist() == [False] * 4
    publish(home, "a" * 12, IDS.slice(0, 3), [0, 0, 0])
    publish(home, "b" * 12, IDS.slice(3, 3), [0, 0, 0])
    assert release_history.known(home, "people", asked).tolist() == [True, False, True, False]


@pytest.mark.parametrize("harm", ["gone", "cut", "fewer", "manifest"])
def test_a_memory_that_cannot_be_trusted_stops_the_next_release(home: Home, harm: str) -> None:
    publish(home, "a" * 12, IDS, [0] * 6)
    members = home.private / "people/memberships" / ("a" * 12) / "members.parquet"
    if harm == "gone":
        members.unlink()
    elif harm == "cut":
        members.write_bytes(members.read_bytes()[:40])
    elif harm == "fewer":
        release_history.write([batch(IDS.slice(0, 3), [0] * 3)], window_key(home), members)
    else:
        (home.releases / "people" / ("a" * 12) / "manifest.json").unlink()
    with pytest.raises(InputError, match="people/aaaaaaaaaaaa"):
        release_history.window(home, spec())


def test_a_key_that_is_gone_is_never_replaced_by_a_new_one(home: Home) -> None:
    """Everybody was a newcomer under the new one, and whoever had to be forgotten was said to be unknown."""
    key = home.private / "people/memberships/key"
    publish(home, "a" * 12, IDS, [0] * 6)
    content = key.read_bytes()
    key.unlink()
    for ask in (
        lambda: release_history.key(home, "people"),
        lambda: release_history.known(home, "people", IDS),
        lambda: release_history.forget(home, "people", IDS),
        lambda: release_history.origin(home, spec(), "content"),
    ):
        with pytest.raises(InputError, match=r"memberships/key: is gone, .* restore it from a copy"):
            ask()
    assert not key.exists()
    key.write_bytes(content)
    assert release_history.known(home, "people", IDS).all()


@pytest.mark.parametrize("identifiers", [["a", "b", "a"], ["a", None, "b"]])
def test_nobody_is_followed_twice_or_without_a_name(tmp_path: Path, identifiers: list[str | None]) -> None:
    with pytest.raises(InputError, match=r"^person: "):
        release_history.write([batch(pa.array(identifiers), [0, 0, 0])], b"k" * 32, tmp_path / "members.parquet")


def test_who_is_forgotten_leaves_a_stranger_behind(home: Home) -> None:
    publish(home, "a" * 12, IDS, [0, 0, 0, 1, 1, 1])
    publish(home, "b" * 12, IDS, [0] * 6)
    before = release_history.window(home, spec()).members
    assert release_history.forget(home, "people", pa.array(["person 2", "nobody"])) == 2
    after = release_history.window(home, spec()).members
    person = release_history.hashed(pa.array(["person 2"]), window_key(home))
    for was, now in zip(before, after, strict=True):
        assert now.classes_of(person).tolist() == [ABSENT] != was.classes_of(person).tolist()
        assert sorted(now.class_) == sorted(was.class_)
        assert len(set(now.person) & set(was.person)) == 5
        assert (np.diff(now.person) > 0).all()
    assert release_history.forget(home, "people", pa.array(["person 2"])) == 0
    assert release_history.forget(home, "another", IDS) == 0
    assert not (home.private / "another/memberships/key").exists()


def test_who_is_forgotten_is_still_missed_by_those_of_their_history(home: Home) -> None:
    """A forgotten person who left needs company; two who left other histories would have given nobody any."""
    publish(home, "a" * 12, IDS, [0, 0, 0, 1, 1, 1])
    publish(home, "b" * 12, IDS, [0, 0, 0, 1, 1, 1])
    others = release_history.hashed(IDS.filter(pa.array([place != 2 for place in range(6)])), window_key(home))
    before = release_history.window(home, spec()).histories(others)
    release_history.forget(home, "people", IDS.slice(2, 1))
    window = release_history.window(home, spec())
    history, departed = window.histories(others)
    assert departed.sum() == before[1].sum() == 1 and departed[history[0]] == 1
    everybody = np.unique(np.concatenate([member.person for member in window.members]))
    new = np.where(np.isin(everybody, others), 0, ABSENT)
    assert intersection([member.classes_of(everybody) for member in window.members], new, 2).left == 1
