"""The replay attack on a release at hand, and what the report says of it."""

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from anon_pipeline.anonymize import encoding, enforce
from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.repair import Repair
from anon_pipeline.audit import regrouping
from anon_pipeline.audit.regrouping import Exchange, Regrouped, regrouped
from anon_pipeline.keys import Key
from anon_pipeline.privacy.k_anonymity import KAnonymity
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.report.attacks import in_words
from anon_pipeline.tables import IntArray
from anon_pipeline_tests.anonymize.test_mixing import REPAIR as MIXED
from anon_pipeline_tests.people import KEY

PEOPLE = 100


def exchanged(repair: Repair, exchange: Exchange) -> ClassStatistics:
    """The people of the table after two of them have exchanged their values."""
    own, value, there, other = exchange
    counts = repair.people.sensitive["ill"].counts.toarray()
    for cell, less, more in ((own, value, other), (there, other, value)):
        counts[cell, less] -= 1
        counts[cell, more] += 1
    ill = replace(repair.people.sensitive["ill"], counts=sparse.csr_array(counts))
    return replace(repair.people, sensitive={"ill": ill})


def repair_of(n: int, share: float) -> Repair:
    random = np.random.default_rng(8)
    frame = pd.DataFrame({"age": random.integers(18, 90, n), "town": random.choice(["Ulm", "Bonn", "Kiel", "Jena"], n)})
    ill = pd.DataFrame({"ill": np.where(random.random(n) < share, "yes", "no")})
    learned = [encoding.learn_domain(name, frame[name]) for name in frame.columns]
    codes = np.stack([code for _, code in learned], axis=1)
    cells, cell = encoding.count_cells(tuple(domain for domain, _ in learned), codes, np.zeros((n, 1)))
    demands = [LDiversity(column="ill", l=2, kind="distinct")]
    return AnonymizerTree(k=4, demands=demands).repair_of(cells, encoding.count_sensitive(cells, cell, ill))


def after_a_release(repair: Repair) -> Repair:
    """The same people, who were in a release under another key."""
    return replace(repair, former=repair.repaired(Key(b"former" + bytes(26))))


@pytest.fixture(autouse=True)
def _fewer_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough to tell a grouping that hides from one that does not."""
    monkeypatch.setattr(regrouping, "PEOPLE", PEOPLE)


def found_in(repair: Repair, published: IntArray) -> Regrouped:
    (found,) = regrouped(repair, published, KEY)
    return found


@pytest.mark.long
def test_the_key_hides_what_the_grouping_would_tell() -> None:
    repair = repair_of(1000, 0.2)
    found = found_in(repair, repair.repaired(KEY))
    assert (found.column, found.people, found.undecided) == ("ill", PEOPLE, 0.0)
    assert found.certain <= 0.01
    assert found.certain < found.high < 0.04


@pytest.mark.long
def test_a_grouping_that_tells_why_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    repair = repair_of(1000, 0.2)
    for name in ("STAYS", "STAYS_ELSE", "WHOLE", "STAYS_WHOLE", "PASSED"):
        monkeypatch.setattr(enforce, name, 0.0)
    assert found_in(repair, repair.repaired(KEY)).certain > 0.1


def test_classes_that_no_demand_has_touched_tell_nothing() -> None:
    repair = repair_of(600, 0.9)
    untouched = replace(repair, demands=[KAnonymity(k=4)])
    found = found_in(untouched, untouched.repaired(KEY))
    assert (found.certain, found.undecided) == (0.0, 0.0)


@pytest.mark.long
def test_classes_that_the_key_does_not_give_are_not_decided() -> None:
    repair = repair_of(400, 0.2)
    published = repair.repaired(Key(bytes(32)))
    assert found_in(repair, published).undecided > 0.1


def test_one_value_in_every_class_leaves_nobody_to_attack() -> None:
    repair = repair_of(100, 0.0)
    assert found_in(repair, np.zeros(len(repair.cells.counts), dtype=np.int64)) == Regrouped("ill", 0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("certain", "undecided", "high"), [(0, 0, 0.0149), (0.01, 0, 0.0311), (0.005, 0.005, 0.0311), (1, 0, 1)]
)
def test_the_upper_end_is_that_of_clopper_and_pearson(certain: float, undecided: float, high: float) -> None:
    """One-sided: the share with which so few of 200 are found in one of twenty samples."""
    assert Regrouped("ill", 200, certain, undecided).high == pytest.approx(high, abs=1e-4)


@pytest.mark.long
@pytest.mark.parametrize(
    ("repair", "tries"),
    [(repair_of(60, 0.25), 120), (MIXED, 40), (after_a_release(repair_of(60, 0.25)), 120)],
    ids=["near classes", "mixed classes", "after a release"],
)
def test_odds_are_those_of_running_it_again(repair: Repair, tries: int) -> None:
    """Of a union of a few classes: how often other keys give a class, for the true values and after an exchange."""
    keys = [Key(number.to_bytes(32, "big")) for number in range(tries)]
    prepared = repair.prepared()
    runs = [prepared.under(repair.chance(key)) for key in keys]

    def classes(group: IntArray) -> set[tuple[int, ...]]:
        return {tuple(np.flatnonzero(group == number).tolist()) for number in range(int(group.max()) + 1)}

    shown = [classes(run) for run in runs]
    counts = repair.people.sensitive["ill"].counts.toarray()
    untouched = classes(repair.class_of_cell)
    often = Counter(one for run in shown for one in run if one not in untouched)
    unions = cache(lambda number: regrouping.Unions(repair, runs[number], keys[number]))
    compared = 0
    for here, hits in often.most_common(5):
        cells = np.array(here)
        ill, well = (cells[counts[cells, value] > 0] for value in (1, 0))
        if not len(ill) or not len(well):
            continue
        exchange = (int(well[0]), 0, int(ill[-1]), 1)
        estimates = [
            1.0 if union is None else union.ratio(exchange, "ill")
            for number, found in enumerate(shown)
            if here in found
            for union in [unions(number).union_of(cells)]
        ]
        other = replace(repair, people=exchanged(repair, exchange)).prepared()
        again = sum(here in classes(other.under(repair.chance(key))) for key in keys)
        assert np.mean(estimates) == pytest.approx(again / hits, abs=4 * np.sqrt((again + 4) / hits / hits))
        compared += 1
    assert compared > 1


def test_the_report_tells_the_shares() -> None:
    words = in_words({"findings": [], "people": 9, "members": 6, "control": 3, "control_kind": "twin",
                      "replayed": [Regrouped("ill", 60, 0.0125, 0.05).to_json()]})  # fmt: skip
    assert words is not None
    (told,) = [one for one in words.groups if one.title == "Grouped again"]
    assert "ill: of 60 people" in told.sentences[0]
    assert "1.2" in told.sentences[0] or "1.3" in told.sentences[0]
    assert "no proof" in told.summary
