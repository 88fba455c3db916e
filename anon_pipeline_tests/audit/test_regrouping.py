"""The replay attack on a release at hand, and what the report says of it."""

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.anonymize import cuts, encoding, enforce, tree
from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.repair import Repair
from anon_pipeline.audit.regrouping import Regrouped, regrouped
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.report.attacks import in_words
from anon_pipeline_tests.people import KEY


def repair_of(n: int, share: float) -> Repair:
    random = np.random.default_rng(8)
    frame = pd.DataFrame({"age": random.integers(18, 90, n), "town": random.choice(["Ulm", "Bonn", "Kiel", "Jena"], n)})
    ill = pd.DataFrame({"ill": np.where(random.random(n) < share, "yes", "no")})
    learned = [encoding.learn_domain(name, frame[name]) for name in frame.columns]
    codes = np.stack([code for _, code in learned], axis=1)
    cells, cell = encoding.count_cells(tuple(domain for domain, _ in learned), codes, np.zeros((n, 1)))
    demands = [LDiversity(column="ill", l=2, kind="distinct")]
    return AnonymizerTree(k=4, demands=demands).repair_of(cells, encoding.count_sensitive(cells, cell, ill))


def test_the_key_hides_most_of_what_the_grouping_would_tell() -> None:
    """Of a small table, by odds of ten to one; without chance more than twice as many are told (the test below)."""
    repair = repair_of(600, 0.2)
    (found,) = regrouped(repair, repair.repaired(KEY), KEY)
    assert found.column == "ill"
    assert found.people > 40
    assert found.certain <= 0.1


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


def test_the_report_tells_the_shares() -> None:
    words = in_words({"findings": [], "people": 9, "members": 6, "control": 3, "control_kind": "twin",
                      "replayed": [Regrouped("ill", 120, 0.0125, 0.05).to_json()]})  # fmt: skip
    assert words is not None
    (told,) = [one for one in words.groups if one.title == "Grouped again"]
    assert "ill: of 120 members" in told.sentences[0]
    assert "1.2" in told.sentences[0] or "1.3" in told.sentences[0]
