"""The audit of a release: a twin of it is attacked, on people who are in the twin and on people who are not.

The twin is made like the release, with the same spec and seed and a model of its own, from everybody except the control
people. So nobody is missing from the published release. The success of the attacks on the twin's members beyond that on
the control people is what being in such a release gives away. The attacks are in `anon_pipeline.attack`, which shares
no code with the anonymization.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.frames import with_columns
from anon_pipeline.anonymize.policy import anonymize_part, protected_of, tree_of
from anon_pipeline.arrays import IntArray
from anon_pipeline.attack.limits import OF_INFERENCE, largest_leak
from anon_pipeline.attack.model_answers import Question
from anon_pipeline.attack.models_audit import RAW, RELEASE, Effort, audit_fitted, audit_models
from anon_pipeline.attack.table_audit import Earlier, Knowledge, Tables, audit_table
from anon_pipeline.audit.same_values import places
from anon_pipeline.engine.base import Batch
from anon_pipeline.engine.batches import chosen_rows
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.keys import Key
from anon_pipeline.learning.cells import folds_of_sample
from anon_pipeline.learning.guide import Model, TrainedGuide, fit_model
from anon_pipeline.learning.models import LARGE, LoadLogged, Task, build_model, name_of, rounds_of, task_of
from anon_pipeline.learning.problem import PLAINLY, Fitting, Problem
from anon_pipeline.learning.targets import JointGuide, train_guide
from anon_pipeline.learning.without_target import scored_rows, taught
from anon_pipeline.release.manifest import class_sizes
from anon_pipeline.spec import ColumnType, ReleaseSpec, Role

#: Masking techniques that replace values by tokens under a key.
KEYED = frozenset({"pseudonymize", "encrypt"})

#: Fewer people than this are too few to distinguish a leak from chance.
FEWEST = 60

#: The draw of control people takes so many people at once, so that it needs little memory in a large table.
DRAWN_TOGETHER = 1_000_000


@dataclass(frozen=True, eq=False)
class Twin:
    """A release made from some of the people, and the people it was made from and without.

    Attributes
    ----------
    released : the recoded rows of its m members, ordered by these values, as in a release
    origin : the position in `members` of each released row, shape (m,)
    members : the raw rows of the members, shape (m, c)
    control : the raw rows of the people who were kept out
    classes : the twin's table of classes
    guide : the model that guided it
    row : the position of each member among the people of whom the twin is made, shape (m,)
    """

    released: pd.DataFrame
    origin: IntArray
    members: pd.DataFrame
    control: pd.DataFrame
    classes: pd.DataFrame
    guide: TrainedGuide | JointGuide
    row: IntArray


@dataclass(frozen=True)
class Bound:
    """A demand of the spec on an attack.

    Attributes
    ----------
    name : for example "attribute_inference_income"
    demand : the demand in words
    measured : the upper end of the 95 % interval, or the estimate; None where nothing was measured, which never holds
    limit : the largest allowed value
    """

    name: str
    demand: str
    measured: float | None
    limit: float

    @property
    def holds(self) -> bool:
        return self.measured is not None and self.measured <= self.limit


def control_people(hashes: IntArray, spec: ReleaseSpec, key: Key) -> npt.NDArray[np.bool_]:
    """The people who are kept out, drawn by their content hashes under the private key, shape (n,).

    Every run under the same key draws the same people, in any order of rows, and so many of equal people; which of
    them does not matter. At least 500 and at most 5,000 people, but no more than a third. If equal people were drawn
    together, no control person could have a double in the release, as people in it have, and every attack on a table
    of few columns would seem to succeed.

    The whole key draws, and not a seed. A release shows who of the others was kept out. With a short seed, whoever
    knows the others would try all seeds, and then rule out every value with which a person would have been drawn
    otherwise.
    """
    size = min(max(500, round(spec.audit.share * len(hashes))), 5_000, len(hashes) // 3)
    if not size:
        return np.zeros(len(hashes), dtype=bool)
    drawn, number = np.empty(len(hashes), dtype=np.uint64), pd.Series(hashes).groupby(hashes).cumcount().to_numpy()
    for start in range(0, len(hashes), DRAWN_TOGETHER):
        part = slice(start, start + DRAWN_TOGETHER)
        block = np.stack([hashes[part], number[part]], axis=1).view(np.uint64)
        drawn[part] = key.pseudorandom("control people", spec.dataset, block)[:, 0]
    chosen: npt.NDArray[np.bool_] = drawn <= np.partition(drawn, size - 1)[size - 1]
    return chosen


@dataclass(frozen=True, eq=False)
class Audited:
    """The people whose release is attacked, and its policy.

    Attributes
    ----------
    spec : the policy of the release
    key : the dataset's private key, which the attacker does not have
    people : the people, or a sample of them by content hash, as `Engine.sample` gives it
    types : the types of their columns
    """

    spec: ReleaseSpec
    key: Key
    people: Batch
    types: dict[str, ColumnType]


def make_twin(audited: Audited, control: npt.NDArray[np.bool_], fitting: Fitting = PLAINLY) -> Twin:
    """The spec's release of everybody except the control people; demands on a population are left out."""
    spec, key, people = audited.spec, audited.key, audited.people
    frame = pd.concat([people.features, people.target], axis=1)
    members = frame[~control].reset_index(drop=True)
    known = taught(spec, members[spec.target])
    sample, guide = folds_of_sample(people.hash[~control], spec.guide, key, known)
    problem = Problem.of_spec(spec, audited.types, members[spec.features], members[spec.target])
    trained = train_guide(problem, guide, sample.trained, fitting)
    tree = tree_of(spec, key, in_folds=True).set_params(form=spec.recode.form)
    guidance, sensitive = trained.guidance(members, sample.fold), protected_of(spec, members, audited.types)
    tree.fit(members[spec.quasi_identifiers], guidance, sensitive)
    return _twin(spec, tree, trained, frame, control)


def _twin(
    spec: ReleaseSpec,
    tree: AnonymizerTree,
    trained: TrainedGuide | JointGuide,
    people: pd.DataFrame,
    control: npt.NDArray[np.bool_],
) -> Twin:
    row = np.flatnonzero(~control)
    row = row[tree.apply(people.iloc[row][spec.quasi_identifiers]) >= 0]
    inside = people.iloc[row].reset_index(drop=True)
    recoded = with_columns(inside, tree.transform(inside[spec.quasi_identifiers]))[spec.released]
    # Equal rows have no order in a release, so their order is drawn at random.
    shuffled = recoded.sample(frac=1, random_state=spec.seed)
    texts = with_columns(shuffled, {name: shuffled[name].astype(str) for name in spec.released})
    order = texts.sort_values(spec.released, kind="stable")
    origin = order.index.to_numpy(np.int64)
    classes = tree.classes_
    if (
        any(summary.labels is not None or summary.domain.levels is not None for summary in tree.summaries_)
        and tree.form == "range"
    ):
        # An attacker looks labels up in the class table, which says what each stands for.
        classes = with_columns(classes, {summary.domain.name: summary.ranges() for summary in tree.summaries_})
    others = people[control].reset_index(drop=True)
    return Twin(recoded.iloc[origin].reset_index(drop=True), origin, inside, others, classes, trained, row)


def _attacked(twin: Twin, people: Batch, of_control: Batch, earlier: Sequence[Earlier]) -> tuple[Tables, list[Earlier]]:
    """The tables that are attacked, with kept numbers told apart that the twin's floats take for one."""
    tables = Tables(twin.released, twin.members, twin.control, twin.origin, twin.classes)
    if not len(people.digits.columns):
        return tables, list(earlier)
    of_members = people.digits.iloc[twin.row].reset_index(drop=True)
    exact = {
        "released": of_members.iloc[twin.origin].reset_index(drop=True),
        "original": of_members,
        "control": of_control.digits.reset_index(drop=True),
        **{f"earlier {place}": release.released for place, release in enumerate(earlier)},
    }
    found = list(places(exact, of_members.columns).values())
    tables = replace(
        tables,
        released=with_columns(twin.released, found[0]),
        original=with_columns(twin.members, found[1]),
        control=with_columns(twin.control, found[2]),
    )
    return tables, [
        replace(release, released=with_columns(release.released, of_release))
        for release, of_release in zip(earlier, found[3:], strict=True)
    ]


def audit(
    audited: Audited,
    earlier: Sequence[Earlier] = (),
    held_out: Batch | None = None,
    seed: int = 0,
    fitting: Fitting = PLAINLY,
) -> dict[str, Any]:
    """Attack a twin of the release, and models trained on people and on releases of them.

    Parameters
    ----------
    earlier : former releases, as their readers have them
    held_out : the control people, where they were kept out of the release itself
    seed : of the attackers' random draws; control people are drawn with the key
    fitting : attacks also run side by side in its workers; its progress is called for shadow models

    Returns
    -------
    Plain data for the manifest: how many people were attacked, `findings`, `models` and `guide`, all of it aggregates.
    """
    spec, people = audited.spec, audited.people
    n = len(people.hash)
    content: dict[str, Any] = {"people": n, "control_kind": spec.audit.control, "findings": []}
    if n < max(FEWEST, 4 * spec.k):
        return {**content, "skipped": f"{n} people are too few to attack a release of them and tell a leak from chance"}
    control = np.zeros(n, dtype=bool) if held_out is not None else control_people(people.hash, spec, audited.key)
    try:
        twin = make_twin(audited, control, replace(fitting, progress=None))
        if held_out is not None:
            twin = replace(twin, control=pd.concat([held_out.features, held_out.target], axis=1))
    except (InputError, Refused) as error:
        return {**content, "skipped": f"no twin could be made without the control people: {error}"}
    content |= {
        "members": len(twin.members),
        "control": len(twin.control),
        "class_sizes": class_sizes(np.sort(twin.classes["class_size"].to_numpy(np.int64))),
        "earlier_releases": len(earlier),
    }
    if not len(twin.members):
        return {**content, "skipped": "the twin released nobody"}
    of_control = chosen_rows(people, np.flatnonzero(control)) if held_out is None else held_out
    tables, earlier = _attacked(twin, people, of_control, earlier)
    with fitting.workers.meanwhile(
        audit_table,
        tables,
        knowledge_of(spec, audited.types),
        earlier,
        spec.audit.targets,
        seed,
    ) as findings:
        models = {}
        if spec.audit.models:
            models = _attack_models(audited, twin, seed, fitting)
        content["findings"] = [finding.to_json() for finding in findings()]
    return content | models


@dataclass(frozen=True)
class Trainer:
    """Trains a model on a part of the people, with a seed: on their raw rows, or on a release of them."""

    spec: ReleaseSpec
    key: Key
    types: dict[str, ColumnType]
    load_logged: LoadLogged | None
    released: bool

    def __call__(self, part: pd.DataFrame, seed: int) -> Any:
        spec = self.spec
        if self.released:
            # Two folds are enough to guide a grouping of so few people; the release itself has `guide.folds`.
            guide = spec.guide.model_copy(update={"folds": 2})
            folds = np.arange(len(part)) % 2
            problem = Problem.of_spec(spec, self.types, part[spec.features], part[spec.target])
            trained = train_guide(problem, guide, folds, Fitting(self.load_logged), with_full=False)
            part = anonymize_part(spec, self.key, part, trained.guidance(part, folds), self.types)
        task, features = task_of(self.types[spec.target]), {name: self.types[name] for name in spec.features}
        classes = part[spec.target].unique() if task is Task.CLASSIFICATION else None
        rounds = rounds_of(LARGE, classes)
        prototype = build_model(spec.guide.model, task, features, seed, self.load_logged, rounds)
        learnt = part[spec.target].to_numpy(dtype=object if task is Task.CLASSIFICATION else np.float64)
        model = Model(name_of(spec.guide.model), task, tuple(features), None, prototype)
        return fit_model(model, part, learnt).estimator


def knowledge_of(spec: ReleaseSpec, types: dict[str, ColumnType]) -> Knowledge:
    """The attacker's knowledge, from the roles of the spec, so that nobody has to pick columns by hand."""
    # A keyed token reveals nothing without the key, and the attacker is assumed to lack it.
    tokens = {name for name, column in spec.columns.items() if column.steps and column.steps[-1].technique in KEYED}
    return Knowledge(
        quasi_identifiers=tuple(spec.quasi_identifiers),
        sensitive=tuple(spec.with_role(Role.SENSITIVE)),
        other=tuple(name for name in spec.with_role(Role.INSENSITIVE) if name not in tokens),
        numeric=tuple(name for name in spec.released if types[name] is not ColumnType.CATEGORICAL),
        answers=tuple(spec.answers),
    )


def _attack_models(audited: Audited, twin: Twin, seed: int, fitting: Fitting) -> dict[str, Any]:
    """Membership and attribute inference on models of raw people, models of released people, and the guiding model."""
    spec, key, types = audited.spec, audited.key, audited.types
    load = None if isinstance(spec.guide.model, str) else fitting.load_logged  # so that pickle need not store it
    try:
        members, control = (
            people.iloc[scored_rows(spec, people[spec.target])].reset_index(drop=True)
            for people in (twin.members, twin.control)
        )
    except InputError as error:  # too few people have a target
        return {name: {"skipped": str(error)} for name in ("models", "guide")}
    try:
        models = audit_models(
            members,
            Question(
                spec.target,
                spec.features,
                attributes=[name for name in spec.with_role(Role.SENSITIVE) if name != spec.target],
            ),
            {
                RAW: Trainer(spec, key, types, load, released=False),
                RELEASE: Trainer(spec, key, types, load, released=True),
            },
            Effort(sample=spec.audit.people, shadows=spec.audit.shadows, seed=seed),
            workers=fitting.workers,
            progress=fitting.progress,
        ).to_json()
    except (InputError, Refused) as error:
        models = {"skipped": str(error)}
    fitted = twin.guide.full
    try:
        guide = audit_fitted(
            fitted.estimator,
            members,
            control,
            Question(spec.target, fitted.features, attributes=[]),
            Effort(seed=seed),
        ).to_json()
    except InputError as error:
        guide = {"skipped": str(error)}
    return {"models": models, "guide": guide}


def bounds(spec: ReleaseSpec, content: dict[str, Any]) -> list[Bound]:
    """The demands of the spec on the attacks, compared with the upper ends of 95 % intervals, or with the estimates.

    A demand on an attack that was not made, or could not be measured, does not hold.
    """
    asked = spec.audit
    wanted: list[tuple[str, float, str]] = []
    if asked.linkage is not None:
        wanted.append(("linkage", asked.linkage, "the right record is picked"))
    if asked.singling_out is not None:
        wanted.append(("singling_out", asked.singling_out, "one person is isolated"))
    for sensitive, limit in asked.attribute_inference.items():
        wanted.append((f"{OF_INFERENCE}{sensitive}", limit, f"{sensitive} is inferred"))
    upper = asked.bounds_on == "upper_end"
    found = []
    for name, limit, what in wanted:
        demand = f"what being in the release adds to how often {what} is at most {100 * limit:g} %"
        found.append(Bound(name, demand, largest_leak(content["findings"], name, upper), limit))
    if asked.membership_auc is not None:
        membership = content.get("models", {}).get("membership", [])
        aucs = [finding["auc_high" if upper else "auc"] for finding in membership if finding["model"] == RELEASE]
        demand = f"models trained on the release tell members from others, AUC at most {asked.membership_auc:g}"
        found.append(Bound("membership_auc", demand, max(aucs, default=None), asked.membership_auc))
    if asked.replayed is not None:
        # As in the interval, people of whom nothing could be counted are taken for people whose value is learned.
        shares = [
            column["high"] if upper else column["certain"] + column["undecided"]
            for column in content.get("replayed", [])
        ]
        demand = f"who runs the grouping again learns the value of at most {100 * asked.replayed:g} % for certain"
        found.append(Bound("replayed", demand, max(shares, default=None), asked.replayed))
    return found
