"""The replay attack on a release at hand, and what the report says of it."""

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.anonymize import cuts, encoding, enforce, tree
from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.chance import Chance
from anon_pipeline.anonymize.repair import Repair
from anon_pipeline.audit import regrouping
from anon_pipeline.audit.regrouping import Leaning, Regrouped, regrouped
from anon_pipeline.keys import Key
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.report.attacks import in_words
from anon_pipeline.tables import IntArray
from anon_pipeline_tests.people import KEY

PEOPLE = 12


def repair_of(n: int, share: float) -> Repair:
    random = np.random.default_rng(8)
    frame = pd.DataFrame({"age": random.integers(18, 90, n), "town": random.choice(["Ulm", "Bonn", "Kiel", "Jena"], n)})
    ill = pd.DataFrame({"ill": np.where(random.random(n) < share, "yes", "no")})
    learned = [encoding.learn_domain(name, frame[name]) for name in frame.columns]
    codes = np.stack([code for _, code in learned], axis=1)
    cells, cell = encoding.count_cells(tuple(domain for domain, _ in learned), codes, np.zeros((n, 1)))
    demands = [LDiversity(column="ill", l=2, kind="distinct")]
    return AnonymizerTree(k=4, demands=demands).repair_of(cells, encoding.count_sensitive(cells, cell, ill))


@pytest.fixture(autouse=True)
def _fewer_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough to tell a grouping that hides from one that does not, in a few seconds."""
    monkeypatch.setattr(regrouping, "PEOPLE", PEOPLE)


def test_the_key_hides_most_of_what_the_grouping_would_tell() -> None:
    repair = repair_of(400, 0.2)
    (found,) = regrouped(repair, repair.repaired(KEY), KEY)
    assert (found.column, found.people) == ("ill", PEOPLE)
    assert found.certain <= 0.25  # one of five classes fails before it is repaired, so that many are touched
    assert found.undecided <= 0.2


def test_a_grouping_that_one_assignment_alone_gives_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    repair, repaired = repair_of(400, 0.2), Repair.repaired

    def told(self: Repair, key: Key, people: ClassStatistics | None = None, chance: Chance | None = None) -> IntArray:
        asked = (people or self.people).sensitive["ill"].counts
        same = (asked != self.people.sensitive["ill"].counts).nnz == 0
        return repaired(self, key, people, chance) if same else np.zeros(len(self.cells.counts), dtype=np.int64)

    published = repair.repaired(KEY)
    monkeypatch.setattr(Repair, "repaired", told)
    (found,) = regrouped(repair, published, KEY)
    assert found.certain > 0.3  # most of those whose classes were merged


def test_classes_that_no_demand_has_touched_tell_nothing() -> None:
    repair = repair_of(600, 0.5)
    (found,) = regrouped(repair, repair.class_of_cell, KEY)
    assert found == Regrouped("ill", PEOPLE, 0.0, 0.0)


def test_a_grouping_that_tells_why_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    repair = repair_of(600, 0.2)
    for name in ("DECOYS", "WHOLE", "DECOYS_WHOLE", "PARTNER"):
        monkeypatch.setattr(enforce, name, 0.0)
    monkeypatch.setattr(cuts, "SPLIT", 0.0)
    monkeypatch.setattr(cuts, "_signs", lambda codes, _: tree.hash_of_codes(codes))
    (found,) = regrouped(repair, repair.repaired(KEY), KEY)
    assert found.certain > 0.15


def test_one_value_in_every_class_leaves_nobody_to_attack() -> None:
    repair = repair_of(100, 0.0)
    (found,) = regrouped(repair, np.zeros(len(repair.cells.counts), dtype=np.int64), KEY)
    assert found == Regrouped("ill", 0, 0.0, 0.0)


def test_runs_that_lean_are_weighed_so_that_nothing_is_likelier_than_it_is() -> None:
    """The weights of all runs have mean 1, and a class comes out as often as by chance alone."""
    repair = repair_of(60, 0.2)
    published = repair.repaired(KEY)
    made_of = [len(np.unique(repair.class_of_cell[published == one])) for one in range(int(published.max()) + 1)]
    here = np.flatnonzero(published == int(np.argmax(np.array(made_of) == 2)))

    def comes_out(group: IntArray) -> bool:
        return bool(np.array_equal(np.flatnonzero(group == group[here[0]]), here))

    plain, leaning, weights = 0, 0.0, 0.0
    for number in range(TRIES := 300):
        key = Key(number.to_bytes(32, "big"))
        plain += comes_out(repair.repaired(key))
        chance = Leaning.towards(key, repair, here)
        leaning += comes_out(repair.repaired(key, chance=chance)) * chance.weight
        weights += chance.weight
    assert plain > 10
    assert weights / TRIES == pytest.approx(1, abs=0.25)
    assert leaning / plain == pytest.approx(1, abs=0.35)


def test_the_report_tells_the_shares() -> None:
    words = in_words({"findings": [], "people": 9, "members": 6, "control": 3, "control_kind": "twin",
                      "replayed": [Regrouped("ill", 60, 0.0125, 0.05).to_json()]})  # fmt: skip
    assert words is not None
    (told,) = [one for one in words.groups if one.title == "Grouped again"]
    assert "ill: of 60 people" in told.sentences[0]
    assert "1.2" in told.sentences[0] or "1.3" in told.sentences[0]
    assert "no proof" in told.summary
