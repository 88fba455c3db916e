"""The minimality attack: do the shapes of the groups reveal where a rare value made the anonymizer act?

R. C.-W. Wong, A. W.-C. Fu, K. Wang, J. Pei (VLDB 2007): an algorithm that changes only what it must reveals, by its
changes, which people made them necessary. Here a model learns from half of the groups how their share of rare values
depends on their shape. The shape is the number of rows, the width in each column, and the number of withheld columns;
no sensitive value is among it. The model then ranks the people of the other half. Large, wide groups may have more rare
values for a good statistical reason. This holds for control people in the same groups too, but what the anonymizer did
for the members does not. So only the success on members beyond that on control people is due to the algorithm.
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from anon_pipeline.arrays import FloatArray
from anon_pipeline.attack.candidates import Candidates, find_candidates
from anon_pipeline.attack.inference import named_rare, rare_codes
from anon_pipeline.attack.rates import Finding, Known, Rates, finding
from anon_pipeline.attack.released import Released
from anon_pipeline.attack.targets import Attacked
from anon_pipeline.threads import one_thread

#: From fewer groups than this nothing can be learned.
FEWEST = 40


def minimality(attacked: Attacked, targets: int) -> list[Finding]:
    """One finding per sensitive column; none where there are too few groups or every row is a group."""
    release = attacked.release
    if len(release.sizes) < FEWEST or np.median(release.sizes) < 2:
        return []
    members = attacked.members.first(targets)
    control = None if attacked.control is None else attacked.control.first(targets)
    people = [group for group in (members, control) if group is not None]
    guessed = [find_candidates(release, group.codes) for group in people]
    shapes = _shapes(release)
    findings = []
    for column, domain in enumerate(attacked.kept):
        if domain.name not in attacked.knowledge.sensitive:
            continue
        rare = rare_codes(domain, attacked.kept_codes[:, column], attacked.knowledge.answers)
        of_rows = rare[attacked.kept_codes[:, column]]
        predicted = _cross_predicted(
            shapes, np.bincount(release.group, weights=of_rows) / release.sizes, release, attacked.seed
        )
        scores = [_of_people(predicted, candidates, release) for candidates in guessed]
        truths = [rare[group.kept[: len(score), column]] for group, score in zip(people, scores, strict=True)]
        attack, of_control, blind = named_rare(scores, truths, float(of_rows.mean()))
        findings.append(
            finding(
                f"minimality: {domain.name}",
                "inference",
                Known(tuple(attacked.knowledge.quasi_identifiers)),
                f"who ranks people by the shape of their group finds one with a rare {domain.name}",
                Rates(attack, of_control, blind),
                {"rare_share": float(of_rows.mean()), "groups": len(release.sizes)},
            )
        )
    return findings


def _shapes(release: Released) -> FloatArray:
    """Size, number of columns without a representative, and widths of each group, shape (J, p + 2)."""
    widths = [boxes.widths()[release.box[:, column]] for column, boxes in enumerate(release.boxes)]
    withheld = np.isnan(release.representative).sum(axis=1)
    return np.column_stack([release.sizes, withheld, *widths]).astype(np.float64)


def _cross_predicted(shapes: FloatArray, shares: FloatArray, release: Released, seed: int) -> FloatArray:
    """The rare share of each group as predicted by a model of the other half of the groups, shape (J,)."""
    half = np.random.default_rng([seed, 7]).permutation(len(shares)) % 2
    predicted = np.empty(len(shares))
    for side in (0, 1):
        model = HistGradientBoostingRegressor(
            max_iter=30, min_samples_leaf=10, early_stopping=False, random_state=seed % 2**32
        )
        learned = half != side
        varying = np.ptp(shapes[learned], axis=0) > 0
        if not varying.any():
            predicted[~learned] = np.average(shares[learned], weights=release.sizes[learned])
            continue
        with one_thread():
            model.fit(shapes[learned][:, varying], shares[learned], sample_weight=release.sizes[learned])
            predicted[~learned] = model.predict(shapes[~learned][:, varying])
    return np.round(predicted, 9)


def _of_people(predicted: FloatArray, candidates: Candidates, release: Released) -> FloatArray:
    """The prediction for each person, averaged over the records of their candidate groups."""
    summed = np.bincount(candidates.unit, weights=predicted * release.sizes, minlength=len(candidates.sizes))
    return np.asarray(np.round((candidates.best @ summed) / candidates.records(), 9), dtype=np.float64)
