"""Attacks with shadow models on models of a test: half of the people are members. Holds no test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from anon_pipeline.attack import lira
from anon_pipeline.attack.lira import Halves, ShadowScores, Train
from anon_pipeline.attack.membership_inference import MembershipFinding, findings
from anon_pipeline.attack.model_answers import Model, Question


def trained_by(build: Callable[[int], Any], target: str, features: Sequence[str]) -> Train:
    """The training function of an estimator fitted on the raw part itself, `build` giving one unfitted by its seed."""

    def train(part: pd.DataFrame, seed: int) -> Model:
        return build(seed).fit(part[list(features)], part[target])

    return train


def train_shadows(train: Train, people: pd.DataFrame, question: Question, halves: Halves) -> ShadowScores:
    """What `train_all_shadows` gives for one way to train."""
    return lira.train_all_shadows({"": train}, people, question, halves)[""]


def attack_by_shadows(
    train: Train, people: pd.DataFrame, target: str, features: Sequence[str], *, shadows: int = 16, seed: int = 0
) -> list[MembershipFinding]:
    """LiRA, its offline variant, and the loss threshold; `shadows` + 1 trainings, each on half of the people."""
    shadow_scores = train_shadows(
        train, people, Question(target, features), lira.draw_halves(len(people), shadows, seed)
    )
    return findings(shadow_scores, "the model")
