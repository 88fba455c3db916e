"""Raw beside release: what an audit shows, and that it shows nothing else."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from anon_pipeline.attack import models_audit
from anon_pipeline.attack.model_answers import Question
from anon_pipeline.attack.models_audit import FITTED, RAW, RELEASE, Effort, ModelsAudit, audit_fitted, audit_models
from anon_pipeline.errors import InputError
from anon_pipeline.spec.parts import Audit

FEATURES = ["age", "city", "hours"]
CITIES = ["Ulm", "Bonn", "Rome", "Oslo"]


def some_people(n: int, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    people = pd.DataFrame(
        {
            "age": random.normal(45, 15, n).round(2),
            "city": random.integers(0, 4, n),
            "hours": random.normal(38, 8, n).round(2),
        }
    )
    people["rich"] = np.where(people["age"] + 20 * random.logistic(size=n) > 50, "yes", "no")
    return people


def train_raw(part: pd.DataFrame, seed: int) -> Any:
    return RandomForestClassifier(15, random_state=seed).fit(part[FEATURES], part["rich"])


def train_release(part: pd.DataFrame, seed: int) -> Any:
    """People shown in twelve boxes, about as an anonymizer would."""
    boxed = part.assign(age=(part["age"] // 15) * 15.0, hours=38.0)
    return train_raw(boxed, seed)


@pytest.fixture(scope="module")
def audit() -> ModelsAudit:
    return audit_models(
        some_people(3000),
        Question("rich", FEATURES),
        {RAW: train_raw, RELEASE: train_release},
        Effort(sample=2400, shadows=8, asked=600),
    )


@pytest.mark.long
def test_both_models_meet_the_same_attacks(audit: ModelsAudit) -> None:
    assert (audit.members, audit.non_members) == (1200, 1200)
    attacks = ["lira", "lira_offline", "loss_threshold"]
    assert [(one.model, one.attack) for one in audit.membership] == [(m, a) for m in (RAW, RELEASE) for a in attacks]
    asked = [("model_attribute_inference", one) for one in FEATURES] + [("model_inversion", None)]
    assert [(one.details["model"], one.name, one.details.get("attribute")) for one in audit.inference] == [
        (model, *one) for model in (RAW, RELEASE) for one in asked
    ]
    assert all(one.attack.trials == 600 for one in audit.inference)


def test_a_release_takes_away_what_the_raw_model_gave_away(audit: ModelsAudit) -> None:
    raw, release = audit.strongest(RAW), audit.strongest(RELEASE)
    assert raw.auc_low > 0.7 and raw.epsilon is not None
    assert release.auc < 0.58
    for one in audit.bought:
        assert one.high < 0
        assert one.change == pytest.approx(one.after - one.before)
        assert one.sentence().startswith("The release-trained model tells less about who it was trained on")
    city = {one.details["model"]: one for one in audit.inference if one.details.get("attribute") == "city"}
    control = city[RAW].control
    assert city[RAW].verdict == "leak"
    assert control is not None and city[RAW].attack.rate > control.rate
    by_attack = {(one.model, one.attack): one.auc for one in audit.membership}
    for one in audit.bought:
        assert (one.before, one.after) == (by_attack[RAW, one.attack], by_attack[RELEASE, one.attack])


@pytest.mark.long
def test_a_release_that_changes_nothing_buys_nothing() -> None:
    audit = audit_models(
        some_people(400), Question("rich", FEATURES), {RAW: train_raw, RELEASE: train_raw}, Effort(shadows=4, asked=50)
    )
    for one in audit.bought:
        assert (one.change, one.low, one.high) == (0, 0, 0)
        assert one.sentence().startswith("No difference shows")


def test_an_audit_is_plain_data_without_people(audit: ModelsAudit) -> None:
    data = json.loads(json.dumps(audit.to_json(), allow_nan=False))
    assert set(data) == {"members", "non_members", "membership", "bought", "inference"}
    assert len(audit.sentences()) == 6 + 3 + 8
    assert all(one.endswith(".") for one in audit.sentences())
    assert data["membership"][0]["at_1_percent"]["true_positive_rate"]["trials"] == 1200
    assert data["membership"][0]["at_0_1_percent"]["allowed"] == 1


@pytest.mark.long
def test_the_same_seed_gives_the_same_audit() -> None:
    def audited(seed: int) -> dict[str, Any]:
        people = some_people(300)
        return audit_models(
            people,
            Question("rich", FEATURES),
            {RAW: train_raw, RELEASE: train_release},
            Effort(sample=200, shadows=4, seed=seed),
        ).to_json()

    people = some_people(300)
    model = train_raw(people[:150], 0)

    def fitted(seed: int) -> dict[str, Any]:
        return audit_fitted(
            model, people[:150], people[150:], Question("rich", FEATURES), Effort(sample=100, seed=seed)
        ).to_json()

    for audit in (fitted, audited):
        first = audit(1)
        assert first == audit(1)
        assert first != audit(2)


@pytest.mark.long
def test_training_parts_are_raw_people_of_the_sample() -> None:
    people = some_people(500).assign(number=np.arange(500))
    people.loc[::10, "rich"] = None
    sizes = []

    def train(part: pd.DataFrame, seed: int) -> Any:
        sizes.append(len(part))
        assert part["rich"].notna().all()
        original = people.set_index("number").loc[part["number"]].reset_index()[part.columns]
        pd.testing.assert_frame_equal(part, original)
        return train_raw(part, seed)

    audit_models(
        people, Question("rich", FEATURES), {RAW: train, RELEASE: train}, Effort(sample=300, shadows=4, asked=20)
    )
    assert len(sizes) == 10
    assert sizes.count(150) >= 2
    assert min(sizes) > 110 and max(sizes) < 190


@pytest.mark.long
def test_a_fitted_model_is_audited_without_training() -> None:
    people = some_people(2000)
    members, others = people[:1200], people[1200:]
    model = train_raw(members, 0)
    audit = audit_fitted(model, members, others, Question("rich", FEATURES), Effort(sample=1000, asked=300))
    assert (audit.members, audit.non_members) == (500, 500)
    (membership,) = audit.membership
    assert membership.attack == "loss_threshold" and membership.auc_low > 0.7
    assert audit.strongest(FITTED) is membership
    assert [one.attack.trials for one in audit.inference] == [300] * 4
    assert not audit.bought
    json.dumps(audit.to_json(), allow_nan=False)
    with pytest.raises(InputError, match="no such model"):
        audit.strongest(RAW)


@pytest.mark.long
def test_a_fitted_model_of_other_people_is_clean() -> None:
    clean, leaks = 0, 0
    for seed in range(10):
        people = some_people(1500, seed)
        audit = audit_fitted(train_raw(people[:500], 0), people[500:1000], people[1000:], Question("rich", FEATURES))
        clean += audit.membership[0].auc_low <= 0.5 <= audit.membership[0].auc_high
        leaks += sum(one.verdict == "leak" for one in audit.inference)
    assert clean >= 8
    assert leaks <= 2


def test_what_cannot_be_audited_is_told() -> None:
    people = some_people(100)
    with pytest.raises(InputError, match="no column poor"):
        audit_models(people, Question("poor", FEATURES), {RAW: train_raw, RELEASE: train_release}, Effort(shadows=4))
    with pytest.raises(InputError, match="no column shoe"):
        audit_fitted(train_raw(people, 0), people, people, Question("rich", [*FEATURES, "shoe"]))
    with pytest.raises(InputError, match="members and non-members"):
        audit_fitted(train_raw(people, 0), people, people[:0], Question("rich", FEATURES))


def test_nothing_of_the_project_but_its_types_errors_threads_and_processes_is_imported() -> None:
    import ast
    from pathlib import Path

    shared = {f"anon_pipeline.{name}" for name in ("arrays", "errors", "threads", "workers")}
    folder = Path(models_audit.__file__).parent
    for name in ("roc", "model_answers", "lira", "membership_inference", "model_inference", "models_audit"):
        for node in ast.walk(ast.parse((folder / f"{name}.py").read_text())):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            for module in modules:
                ours = module.startswith("anon_pipeline")
                assert not ours or module.startswith("anon_pipeline.attack") or module in shared


def test_the_library_tries_as_much_as_a_run_does() -> None:
    assert (Effort().sample, Effort().shadows) == (Audit().people, Audit().shadows) == (4000, 16)
