"""People followed from release to release, through the real command: an attacker with all releases is left with k."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from anon_pipeline.home import Home
from anon_pipeline.keys import private_key
from anon_pipeline.pipeline.sequential_publication import NEWEST, published_intersection
from anon_pipeline.pipeline.stages import Stages
from anon_pipeline.release import fineness, ledger
from anon_pipeline.release.noise import NO_NOISE, Noise
from anon_pipeline.release.publish import DATA
from anon_pipeline.sequential import release_history
from anon_pipeline.sequential.guarantees import ABSENT, Intersection, intersection
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.tables import HISTORY
from anon_pipeline_tests import fixed_keys
from anon_pipeline_tests.end_to_end.harness import Place, command, people, policy, write_dataset
from anon_pipeline_tests.people import KEY
from anon_pipeline_tests.pipeline.in_steps import released_in_steps

pytestmark = pytest.mark.slow

K = 5
SHOWN = ["age", "city", "sex"]


def everybody(n: int = 900) -> pd.DataFrame:
    """People with a name, and with a mark that is kept as it is and tells every record of one person."""
    frame = people(n, 3)
    frame.insert(0, "name", [f"Name-{number}" for number in range(n)])
    return frame.assign(mark=np.random.default_rng(1).permutation(n))


def followed_policy(**asked: Any) -> dict[str, Any]:
    spec = policy()
    spec["columns"] = {"name": {"role": "identifier"}, **spec["columns"], "mark": {"role": "insensitive"}}
    return spec | {
        "person": "name",
        "across_releases": {"k": K, "window": 4} | asked,
        "privacy": {"k_anonymity": {"k": K}, "l_diversity": {"column": "ill", "l": 2, "kind": "distinct"}},
        "audit": {"enabled": False},
    }


def released(place: Place, frame: pd.DataFrame, spec: dict[str, Any] | None = None) -> dict[str, Any]:
    write_dataset(place.dataset, frame, spec or followed_policy())
    ended = place.run("--json")
    assert ended.exit_code == 0, ended.said
    content: dict[str, Any] = json.loads(ended.stdout)
    return content


@pytest.fixture(scope="module")
def three_months(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Three releases of people who come, leave and grow older."""
    root = tmp_path_factory.mktemp("followed")
    place = Place(Home(root / "home"), root / "people")
    with fixed_keys.shared("three months"):
        pool, random = everybody(), np.random.default_rng(2)
        present, coming = np.arange(600), 600
        for month in range(3):
            if month:
                staying = present[random.random(len(present)) > 0.03]
                present = np.r_[staying, np.arange(coming, coming + 600 - len(staying))]
                coming += 600 - len(staying)
            frame = pool.iloc[present].copy()
            frame["age"] += (np.arange(900)[present] % 12 < month).astype(int)
            write_dataset(place.dataset, frame.sample(frac=1, random_state=month), followed_policy())
            if month < 2:
                released_in_steps(place)
        ended = place.run()
        assert ended.exit_code == 0, ended.said
    return place


def manifests(place: Place) -> list[dict[str, Any]]:
    versions = [entry.version for entry in ledger.read(place.home)]
    return [json.loads((place.home.releases / "people" / one / "manifest.json").read_text()) for one in versions]


def test_who_has_all_three_releases_is_left_with_k(three_months: Place) -> None:
    """Written from the attacker's side: the published files alone, joined by the mark."""
    seen = []
    for manifest in manifests(three_months):
        frame = pq.read_table(three_months.home.releases / "people" / manifest["version"] / "data.parquet").to_pandas()
        seen.append(dict(zip(frame["mark"], zip(*(frame[name] for name in SHOWN), strict=True), strict=True)))
    sequences = Counter(tuple(str(one.get(mark)) for one in seen) for mark in seen[-1])
    assert len(seen) == 3 and len(set().union(*seen)) > len(seen[-1])
    assert min(sequences.values()) >= K


def test_manifest_and_check_tell_what_was_measured(three_months: Place) -> None:
    first, _, third = manifests(three_months)
    entry = third["across_releases"]
    assert first["across_releases"]["former"] == []
    assert entry["former"] == [one["version"] for one in manifests(three_months)][:2]
    assert entry["measured"]["releases"] == 3 and entry["measured"]["fewest"] >= K and entry["measured"]["below"] == 0
    stages = Stages(three_months.home, ReleaseSpec.load(three_months.dataset))
    newcomers = stages.load("followed_people").facts["newcomers"]
    rows = third["rows"]
    noise = Noise(private_key(ReleaseSpec.load(three_months.dataset), three_months.home), "people", third["version"])
    told = fineness.coarse(newcomers, rows["source"], noise.of("across_releases", "newcomers"))
    assert newcomers > 0 and entry["newcomers"] == told
    assert entry["kept"] is stages.load("anonymizer_tree").facts["kept"]
    assert entry["kept"] is True
    assert rows["released"] + rows["suppressed"] + rows["waiting"] == rows["source"] == 600
    check = next(one for one in third["checks"] if one["name"] == "across_releases")
    assert check["passed"] is True and check["measured"] == entry["measured"]["fewest"]
    assert "name" not in pq.read_schema(three_months.home.releases / "people" / third["version"] / "data.parquet").names


def test_the_same_month_again_publishes_nothing_new(tmp_path: Path) -> None:
    """Held against itself, the newest release gave another grouping of the same people."""
    random = np.random.default_rng(1)
    place = Place(Home(tmp_path / "home"), tmp_path / "people")
    age = random.integers(18, 80, 600)
    pool = pd.DataFrame(
        {
            "name": [f"Name-{number}" for number in range(600)],
            "age": age,
            "city": random.choice(list("ABCD"), 600),
            "sex": random.choice(["f", "m"], 600),
            "ill": np.where(age + random.normal(0, 15, 600) > 50, "yes", "no"),
            "visits": 0,
        }
    )
    spec = followed_policy(window=12)
    del spec["columns"]["mark"]
    spec["privacy"] = {"k_anonymity": {"k": K}}
    for month, present in enumerate((np.arange(300), np.sort(random.permutation(600)[:330])), start=1):
        frame = pool.iloc[present].copy()
        frame["age"] += (present % 5 == 0) * (month - 1)
        write_dataset(place.dataset, frame, spec)
        for _ in range(2):
            released_in_steps(place)
            assert len(ledger.read(place.home)) == month


def test_a_place_that_a_newcomer_took_does_not_tell_who_left() -> None:
    """The attacker has both releases and knows of everybody but one who has left; a newcomer may have come.

    The newcomer is shown as the one person is, so the tables are the same whether the two have changed places or not.
    The exact number of those who left told which, and so did the number of candidates of the person with the fewest: a
    newcomer is no candidate. Of fewer than 100 people no number is told.
    """
    was = np.append(np.repeat(np.arange(20), 10), [ABSENT] * 11)
    stayed, changed = was.copy(), was.copy()
    stayed[200:210] = changed[200:] = 19  # ten newcomers, or eleven
    changed[199] = ABSENT
    same, other = (intersection([was], new, k=5) for new in (stayed, changed))
    assert np.bincount(stayed[stayed >= 0]).tolist() == np.bincount(changed[changed >= 0]).tolist()
    assert (same.left, other.left, same.below, other.below) == (0, 1, 0, 0)
    first, second = (published_intersection(one, 210, 5, NO_NOISE) for one in (same, other))
    assert (first["left"], first["left_below"]) == (second["left"], second["left_below"]) == (0, 0)
    assert (same.fewest, other.fewest) == (10, 9) and first["fewest"] == second["fewest"] == 5
    assert first["people"] == second["people"] == 210
    few = published_intersection(other, 99, 5, NO_NOISE)
    assert few["left"] is None and few["left_below"] is None


def test_how_many_leavers_stand_out_does_not_tell_whether_one_more_left() -> None:
    """Nine of a class have left. Where a tenth has, too, none of them stands out at k = 10, and else all nine do."""
    told = []
    for table in range(200):
        random = np.random.default_rng(table)
        was = np.repeat(np.arange(20), 20)
        now = was.copy()
        for class_ in range(1, 20):
            now[random.choice(np.flatnonzero(was == class_), random.integers(0, 15), replace=False)] = ABSENT
        now[:9] = ABSENT
        more = now.copy()
        more[9] = ABSENT
        of_nine, of_ten = (intersection([was], one, k=10) for one in (now, more))
        assert of_nine.left_below - of_ten.left_below == 9
        one, other = (published_intersection(overlap, 400, 10, NO_NOISE)["left_below"] for overlap in (of_nine, of_ten))
        told.append(one != other)
    assert np.mean(told) < 0.3  # in steps of about sqrt(400) 46 % were


def test_no_more_people_are_said_to_stand_out_than_to_have_left() -> None:
    """Of 400 people a manifest could say that nobody had left, and that about 100 of these stood out."""
    overlap = Intersection(releases=2, people=400, fewest=10, below=0, alone=0, left=12, left_below=12)
    noise = [Noise(KEY, "people", str(number)) for number in range(100)]
    told = [published_intersection(overlap, 400, 10, of_release) for of_release in noise]
    alone = [fineness.moved_together(12, 400, 10, of_release.of("left_below")) for of_release in noise]
    assert any(one["left"] < bare for one, bare in zip(told, alone, strict=True))
    assert [one["left_below"] for one in told] == [
        min(one["left"], bare) for one, bare in zip(told, alone, strict=True)
    ]  # it follows from the two numbers that were said before, and from no other


def test_the_same_people_again_are_nothing_new(three_months: Place, tmp_path: Path) -> None:
    place = three_months.copy(tmp_path)
    ended = place.run()
    assert ended.exit_code == 0 and "stands already" in ended.said
    assert len(ledger.read(place.home)) == 3


def test_groups_that_were_one_class_are_known_to_have_been(three_months: Place) -> None:
    """Which class of the release before each cohort comes from, beside the people of the newest release."""
    stages = Stages(three_months.home, ReleaseSpec.load(three_months.dataset))
    followed = stages.load("followed_people")
    newest = np.load(followed.folder / NEWEST, allow_pickle=False)
    second = manifests(three_months)[1]
    assert followed.facts["former"][-1] == second["version"]
    history = pq.read_table(followed.folder / DATA)[HISTORY].to_numpy()
    assert len(newest) > history.max() and newest[0] == ABSENT
    members = release_history.read(
        three_months.home.private_folder("people", "memberships") / second["version"] / release_history.MEMBERS
    )
    assert set(newest[newest != ABSENT]) == set(members.class_)
    assert len(set(newest[history[history > 0]])) > 10


def test_a_release_is_grouped_again_where_that_is_bounded(three_months: Place, tmp_path: Path) -> None:
    place = three_months.copy(tmp_path)
    spec = followed_policy() | {"audit": {"replayed": 0.9, "models": False}}  # so few are drawn in these runs
    manifest = released(place, everybody().iloc[:600], spec)
    (replayed,) = json.loads(Path(manifest["folder"], "manifest.json").read_text())["audit"]["replayed"]
    assert replayed["column"] == "ill" and replayed["people"] > 0 and replayed["undecided"] == 0


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        ("renamed", "nobody of the last 3 releases is in this table"),
        ("nameless", "somebody has no identifier"),
        ("forgetful", "is no longer known in this home"),
        ("left", "nobody can be released"),
    ],
)
def test_who_cannot_be_followed_is_not_released(three_months: Place, tmp_path: Path, harm: str, sentence: str) -> None:
    place = three_months.copy(tmp_path)
    frame = pd.read_csv(place.dataset / "people.csv")
    if harm == "renamed":
        frame["name"] = frame["name"] + "!"
    elif harm == "nameless":
        frame.loc[7, "name"] = None
    elif harm == "left":
        frame = frame.iloc[::60]
    else:
        next((place.home.private / "people/memberships").glob("*/members.parquet")).unlink()
    write_dataset(place.dataset, frame, followed_policy())
    before = place.releases()
    ended = place.run()
    assert ended.exit_code == 2 and sentence in ended.sentence, ended.said
    assert "Name-" not in ended.said
    assert place.releases() == before


def no_company() -> None:
    """Release everybody where their own values lead, whoever else goes there."""
    from anon_pipeline.sequential import republication
    from anon_pipeline.sequential.cohorts import MinimumCohortSize, place

    def alone(tree: Any, codes: Any, history: Any, counts: Any, minimum_size: Any) -> Any:
        return place(tree, codes, np.zeros_like(history), counts, MinimumCohortSize(minimum_size.k, minimum_size.k))

    republication.place = alone  # type: ignore[assignment]


def test_a_grouping_that_forgets_histories_is_refused(three_months: Place, tmp_path: Path) -> None:
    place = three_months.copy(tmp_path)
    frame = pd.read_csv(place.dataset / "people.csv")
    frame["age"] = np.random.default_rng(4).permutation(frame["age"].to_numpy())
    write_dataset(place.dataset, frame, followed_policy())
    before = place.releases()
    ended = place.run(sabotage=no_company)
    assert ended.exit_code == 3 and "across_releases" in ended.sentence, ended.said
    assert place.releases() == before


def test_the_demand_is_not_dropped_in_silence(three_months: Place, tmp_path: Path) -> None:
    place = three_months.copy(tmp_path)
    silent = followed_policy()
    del silent["across_releases"]
    frame, before = pd.read_csv(place.dataset / "people.csv"), place.releases()
    write_dataset(place.dataset, frame, silent)
    ended = place.run()
    assert ended.exit_code == 2 and "across_releases_ended: <why>" in ended.sentence, ended.said
    assert place.releases() == before


def no_company_and_a_check_that_lies() -> None:
    no_company()
    from anon_pipeline.pipeline import sequential_publication

    ask = sequential_publication.question

    def lies(*given: Any) -> Any:
        question = ask(*given)
        return replace(question, table=question.table.assign(candidates=10**6))

    sequential_publication.question = lies


def test_the_demand_is_measured_once_more_before_a_release_appears(three_months: Place, tmp_path: Path) -> None:
    place = three_months.copy(tmp_path)
    frame = pd.read_csv(place.dataset / "people.csv")
    frame["age"] = np.random.default_rng(4).permutation(frame["age"].to_numpy())
    write_dataset(place.dataset, frame, followed_policy())
    before = place.releases()
    ended = place.run(sabotage=no_company_and_a_check_that_lies)
    assert ended.exit_code == 3 and "beside the releases that stand now" in ended.sentence, ended.said
    assert ended.sentence.lower().count("refused: ") == 1
    assert place.releases() == before


def other_members() -> None:
    """Keep somebody else's class than the one a person was released in."""
    from anon_pipeline.sequential import release_history

    write = release_history.write

    def wrong(batches: Any, key: bytes, destination: Path) -> None:
        write((one.slice(1) for one in batches), key, destination)

    release_history.write = wrong


def test_a_memory_that_is_not_of_this_release_is_refused(three_months: Place, tmp_path: Path) -> None:
    place = three_months.copy(tmp_path)
    frame = pd.read_csv(place.dataset / "people.csv").iloc[1:]
    write_dataset(place.dataset, frame, followed_policy())
    ended = place.run(sabotage=other_members)
    assert ended.exit_code == 3 and "across_releases" in ended.sentence, ended.said


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"person": None}, "nobody can be followed"),
        ({"person": "mark"}, "no column of the role identifier"),
        ({"person": "nobody"}, "no column of the role identifier"),
        ({"across_releases": {"k": 1}}, "greater than or equal to 2"),
        ({"audit": {"control": "held_out"}}, "held_out"),
    ],
)
def test_a_spec_that_cannot_be_followed_is_told(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    place = Place(
        Home(tmp_path / "home"), write_dataset(tmp_path / "people", everybody(50), followed_policy() | changes)
    )
    ended = place.run()
    assert ended.exit_code == 2 and sentence in ended.sentence, ended.said


def test_who_left_has_company_and_not_the_same_under_another_key(tmp_path: Path) -> None:
    """The marks of the published files tell who is gone: the one who left, and others whom the key chose."""
    asked, frame = followed_policy(departures="in_company"), everybody(400)
    together = []
    for name in ("one", "another"):
        place = Place(Home(tmp_path / name), tmp_path / "people")
        marks = []
        for people_then in (frame, frame.drop(index=50)):
            write_dataset(place.dataset, people_then, asked)
            released_in_steps(place)
            folder = place.home.releases / "people" / manifests(place)[-1]["version"]
            marks.append(set(pq.read_table(folder / "data.parquet")["mark"].to_pylist()))
        together.append(marks[0] - marks[1])
    assert all(len(gone) >= K and int(frame["mark"][50]) in gone for gone in together)
    assert together[0] != together[1]


def test_who_asks_to_be_forgotten_is(three_months: Place, tmp_path: Path) -> None:
    place = three_months.copy(tmp_path)
    frame, listed = pd.read_csv(place.dataset / "people.csv"), tmp_path / "gone.txt"
    name = frame["name"][0]
    listed.write_bytes(f"\ufeff{name} \r\n\r\nnobody\t\r\n".encode())
    early = command("forget", place.dataset, listed, home=place.home.root)
    assert early.exit_code == 2 and "1 of these people are in the table of the last run" in early.sentence, early.said
    released(place, frame.iloc[1:])
    ended = command("forget", place.dataset, listed, "--json", home=place.home.root)
    told = json.loads(ended.stdout)
    assert ended.exit_code == 0 and (told["identifiers"], told["found"]) == (2, 1), ended.said
    assert 1 <= told["entries"] <= 3
    again = command("forget", place.dataset, listed, home=place.home.root)
    assert again.exit_code == 2 and "none of its 2 identifiers" in again.sentence, again.said
    assert name not in early.said + ended.said + again.said
    assert place.run().exit_code == 0


def test_a_list_of_names_that_cannot_be_read_is_told(three_months: Place, tmp_path: Path) -> None:
    ended = command("forget", three_months.dataset, tmp_path / "absent.txt", home=three_months.home.root)
    assert ended.exit_code == 2 and "absent.txt: there is no such file" in ended.sentence
    ended = command("forget", three_months.dataset, tmp_path, home=three_months.home.root)
    assert ended.exit_code == 2 and "cannot be read as a text file" in ended.sentence
