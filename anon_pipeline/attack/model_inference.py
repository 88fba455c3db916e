"""Attacks that infer the features of a person from a model: attribute inference, and model inversion.

Both look for the feature values that best explain the target, weighted by how frequent they are (Fredrikson, Lantz,
Jha, Lin, Page, Ristenpart: Privacy in Pharmacogenetics, USENIX Security 2014). The success on people the model was
trained on is compared with the success on other people; this separates what the model remembers from what it has learnt
(Yeom, Giacomelli, Fredrikson, Jha, CSF 2018). Attacks on membership in the training data are in `membership_inference`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from anon_pipeline.arrays import BoolArray, FloatArray, IntArray
from anon_pipeline.attack import model_answers, rates, roc
from anon_pipeline.attack.generalized_values import distinct
from anon_pipeline.attack.model_answers import Answer, Model, Question
from anon_pipeline.attack.rates import Finding, Known, percent
from anon_pipeline.errors import InputError

#: How well truths fit the rows of a frame: takes features (r, f) and truths (r,), gives log-likelihoods (r,).
LogFit = Callable[[pd.DataFrame, pd.Series], FloatArray]

#: So many texts, the most frequent, are tried by an attacker. People with another text are safe from this attack.
MOST_TEXTS = 30
#: Numbers with more different values than this are tried as so many quantile groups.
MOST_GROUPS = 10
#: Most labels that are inverted, the most frequent; and most rounds of coordinate ascent, which usually ends earlier.
MOST_LABELS = 10
MOST_ROUNDS = 10
#: Most cells of a question of model inversion.
MOST_CELLS = 2_000_000
#: Smaller probabilities count as this one: a model's 0 is not certainty.
LEAST_PROBABILITY = 1e-6
#: The success of model inversion, in words.
RECONSTRUCT = "reconstruct a feature"


@dataclass(frozen=True, eq=False)
class Guesses:
    """The success of an attacker on each person, from 0 to 1.

    Attributes
    ----------
    right, blind : success with the model, and by the most frequent value, shape (n,)
    member : whether the model was trained on each person, shape (n,)
    """

    right: BoolArray | FloatArray
    blind: BoolArray | FloatArray
    member: BoolArray


@dataclass(frozen=True, eq=False)
class Candidates:
    """The values of a column that are tried, the most frequent first.

    Attributes
    ----------
    values : one value per candidate, of the column's own type, shape (m,); of a group of numbers its median
    log_prior : logarithm of each one's share of the people, shape (m,)
    code : the candidate that each person's value belongs to, shape (n,); -1 where it belongs to none
    """

    values: pd.Series
    log_prior: FloatArray
    code: IntArray


def attribute_inference(
    model: Model,
    people: pd.DataFrame,
    member: BoolArray,
    question: Question,
    *,
    name: str = "the model",
) -> list[Finding]:
    """Guess a feature of a person from a model, where all other features and the target are known.

    The guess is the candidate with the largest product of its share among the people and the likelihood of the true
    target. For a model with probabilities the likelihood is the probability. For a model with labels it is the share of
    people with the true target among those given the predicted label. For a model with numbers it is a normal density
    with the model's own error. The baseline guesses the most frequent candidate.

    Parameters
    ----------
    people : the targets of the attack, and the attacker's knowledge of marginals and of the model's errors
    member : whether the model was trained on each person, bool of shape (n,)
    question : its attributes are guessed one at a time
    name : which model, in words that go into a sentence

    Returns
    -------
    One finding per attribute, in order.

    Raises
    ------
    InputError
        For columns that are not there, people without a target or a model that fails to answer.
    """
    features, target = question.features, question.target
    asked, truth = model_answers.split(people, target, features)
    guessed = list(features if question.attributes is None else question.attributes)
    unknown = [attribute for attribute in guessed if attribute not in features]
    if unknown:
        raise InputError(f"{unknown[0]} is no feature of the model, so the model cannot be asked to guess it")
    with model_answers.one_thread():
        fit = log_fit(model, asked, truth)

    def attack(attribute: str) -> Finding:
        tried = candidates(asked[attribute])
        score = np.stack(
            [
                log_prior + fit(_with(asked, attribute, tried.values, number), truth)
                for number, log_prior in enumerate(tried.log_prior)
            ]
        )
        guesses = Guesses(tried.code == score.argmax(axis=0), tried.code == 0, member)
        known = Known((*(feature for feature in features if feature != attribute), target))
        details = {"model": name, "attribute": attribute, "candidates": len(tried.values)}
        return _finding("model_attribute_inference", known, guesses, details, f"guess {attribute}")

    with model_answers.one_thread():
        return [attack(attribute) for attribute in guessed]


def model_inversion(
    model: Model,
    people: pd.DataFrame,
    member: BoolArray,
    question: Question,
    *,
    name: str = "the model",
) -> Finding:
    """Reconstruct the likeliest person for each label, and compare it with the people of that label.

    The reconstruction maximises the product of the shares of the feature values and the likelihood of the label, by
    coordinate ascent from the most frequent values. If the target is a number, the labels are the medians of five equal
    groups. Success is the share of a person's features that agree with the reconstruction of their label; the baseline
    is a person made of the most frequent values. In the details, "nearness" is the chance that the reconstruction
    agrees better with a random member than with a random non-member, with its interval (at .5 it resembles both
    equally).

    Parameters and errors are those of `attribute_inference`.
    """
    asked, truth = model_answers.split(people, question.target, question.features)
    tried = {feature: candidates(asked[feature]) for feature in question.features}
    labels, label_of = _labels(truth, model_answers.answer_of(model, truth))
    with model_answers.one_thread():
        inferred = _reconstruct(tried, labels, log_fit(model, asked, truth))
    code = np.stack([values.code for values in tried.values()])  # (f, n)
    agreement = (code == inferred[:, np.maximum(label_of, 0)]).mean(axis=0)
    blind = (code == 0).mean(axis=0)
    known = label_of >= 0
    inside, outside = agreement[known & member], agreement[known & ~member]
    near = roc.auc(inside, outside) if len(inside) and len(outside) else None
    details = {
        "model": name,
        "labels": len(labels),
        "nearness": None if near is None else {"auc": near.value, "low": near.low, "high": near.high},
    }
    guesses = Guesses(agreement[known], blind[known], member[known])
    return _finding("model_inversion", Known((question.target,)), guesses, details, RECONSTRUCT)


# ---------------------------------------------------------------------------------------------------- what is tried


def candidates(column: pd.Series) -> Candidates:
    """The values of a column that an attacker tries, the missing value included."""
    code, representative = _groups(column) if _ordered(column) else _texts(column)
    count = np.bincount(code, minlength=len(representative))
    order = np.argsort(-count, kind="stable")[:MOST_TEXTS]
    place = np.full(len(representative), -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    return Candidates(column.iloc[representative[order]], np.log(count[order] / len(column)), place[code])


def _ordered(column: pd.Series) -> bool:
    types = pd.api.types
    number = types.is_numeric_dtype(column) and not types.is_bool_dtype(column)
    return (number or types.is_datetime64_any_dtype(column)) and column.nunique() > MOST_GROUPS


def _texts(column: pd.Series) -> tuple[IntArray, IntArray]:
    """The number of each person's value, and for each value the place of a person who has it."""
    found = pd.factorize(column, use_na_sentinel=False) if column.isna().any() else distinct(column)
    code = found[0].astype(np.int64)
    return code, np.unique(code, return_index=True)[1].astype(np.int64)


def _groups(column: pd.Series) -> tuple[IntArray, IntArray]:
    """Quantile groups of numbers or dates, and for each the place of its lower median; missing values are a group."""
    present = np.flatnonzero(column.notna())
    rank = column.iloc[present].rank(method="dense").to_numpy(np.int64)
    ends = np.unique(np.quantile(rank, np.arange(1, MOST_GROUPS + 1) / MOST_GROUPS, method="inverted_cdf"))
    code = np.full(len(column), len(ends), dtype=np.int64)
    code[present] = np.searchsorted(ends, rank)
    representative = []
    for number in range(len(ends)):
        group = np.flatnonzero(code[present] == number)
        by_rank = group[np.argsort(rank[group], kind="stable")]
        representative.append(present[by_rank[(len(by_rank) - 1) // 2]])
    if len(present) < len(column):
        representative.append(np.flatnonzero(code == len(ends))[0])
    return code, np.array(representative, dtype=np.int64)


def _labels(truth: pd.Series, answer: Answer) -> tuple[pd.Series, IntArray]:
    """The labels to invert, and the label of each person (-1: none of them)."""
    if answer is Answer.NUMBER:
        group = pd.qcut(truth.rank(method="first"), min(5, len(truth)), labels=False).to_numpy(np.int64)
        return truth.groupby(group).median().reset_index(drop=True), group
    tried = candidates(truth.astype(object))
    labels = tried.values.iloc[:MOST_LABELS].reset_index(drop=True)
    return labels, np.where(tried.code < len(labels), tried.code, -1)


# ---------------------------------------------------------------------------------------------------- what fits


def log_fit(model: Model, asked: pd.DataFrame, truth: pd.Series) -> LogFit:
    """The likelihood of a truth given the model's answer; the model's errors are estimated from these people."""
    answer = model_answers.answer_of(model, truth)
    if answer is Answer.PROBABILITY:
        return lambda rows, truths: np.log(
            np.maximum(model_answers.confidence(model, rows, truths, answer), LEAST_PROBABILITY)
        )
    if answer is Answer.NUMBER:
        error = max(float(model_answers.confidence(model, asked, truth, answer).std()), 1e-12)
        return lambda rows, truths: -((model_answers.confidence(model, rows, truths, answer) / error) ** 2) / 2
    predicted = _predicted(model, asked)
    labels = pd.Index(pd.unique(pd.concat([pd.Series(predicted), truth.astype(object)])))
    table = np.ones((len(labels), len(labels)))  # one imagined person each, so that nothing is impossible
    np.add.at(table, (labels.get_indexer(predicted), labels.get_indexer(truth.astype(object))), 1.0)
    log_share = np.log(table / table.sum(axis=1, keepdims=True))

    def by_label(rows: pd.DataFrame, truths: pd.Series) -> FloatArray:
        log_likelihood: FloatArray = log_share[
            labels.get_indexer(_predicted(model, rows)), labels.get_indexer(truths.astype(object))
        ]
        return log_likelihood

    return by_label


def _predicted(model: Model, rows: pd.DataFrame) -> npt.NDArray[np.object_]:
    return model_answers.ask(lambda: np.asarray(model.predict(rows)).reshape(len(rows)).astype(object))


def _reconstruct(tried: dict[str, Candidates], labels: pd.Series, fit: LogFit) -> IntArray:
    """The candidate of each feature in the likeliest person of each label, shape (f, labels).

    Features are gone through in order, each with the choices before it. Most choices stay, so a question to the model
    is of the next feature and, as long as nothing changes, of twice as many each time: a question of many rows takes
    hardly longer than one of few. Answers that a change has overtaken are asked for again.
    """
    chosen = np.zeros((len(tried), len(labels)), dtype=np.int64)  # the most frequent values
    values, at = list(tried.values()), np.arange(len(labels))
    most = max(1, MOST_CELLS // (len(tried) * len(labels) * MOST_TEXTS))
    for _ in range(MOST_ROUNDS):
        before = chosen.copy()
        row, ahead = 0, 1
        while row < len(tried):
            scores = _scores(tried, chosen, range(row, min(row + ahead, len(tried))), labels, fit)
            changes = False
            for score in scores:
                likely = score + values[row].log_prior
                best = likely.argmax(axis=1)
                # On a tie the former choice stays, so that the rounds end.
                new = np.where(likely[at, best] > likely[at, chosen[row]] + 1e-12, best, chosen[row])
                changes = bool((new != chosen[row]).any())
                chosen[row] = new
                row += 1
                if changes:
                    break
            ahead = 1 if changes else min(2 * ahead, most)
        if (chosen == before).all():
            break
    return chosen


def _scores(
    tried: dict[str, Candidates], chosen: IntArray, rows: range, labels: pd.Series, fit: LogFit
) -> list[FloatArray]:
    """How well every candidate of some features fits each label, all else as chosen, in one question to the model.

    Returns
    -------
    For each of the features an array of shape (labels, candidates).
    """
    numbers = [len(values.values) for values in tried.values()]
    grids = []
    for row in rows:
        grid = np.repeat(chosen[:, :, None], numbers[row], axis=2)
        grid[row] = np.arange(numbers[row])
        grids.append(grid.reshape(len(tried), -1))
    places = np.concatenate(grids, axis=1)
    frame = pd.DataFrame(
        {feature: _taken(values.values, places[place]) for place, (feature, values) in enumerate(tried.items())}
    )
    of_labels = np.concatenate([np.repeat(np.arange(len(labels)), numbers[row]) for row in rows])
    answers = np.split(
        fit(frame, _taken(labels, of_labels)), np.cumsum([len(labels) * numbers[row] for row in rows])[:-1]
    )
    return [answer.reshape(len(labels), -1) for answer in answers]


def _taken(values: pd.Series, places: IntArray) -> pd.Series:
    """The values at these places, with their type and a plain index."""
    return values.iloc[places].reset_index(drop=True)


def _with(asked: pd.DataFrame, attribute: str, values: pd.Series, number: int) -> pd.DataFrame:
    """The people's features, with the same value of an attribute for everybody."""
    changed = asked.copy()
    changed[attribute] = _taken(values, np.full(len(asked), number, dtype=np.int64))
    return changed


# ---------------------------------------------------------------------------------------------------- what it shows


def _finding(attack_name: str, known: Known, guesses: Guesses, details: dict[str, object], success: str) -> Finding:
    right, member = guesses.right, guesses.member
    attack, control = rates.measured(right[member]), rates.measured(right[~member])
    control_group = control if control.trials else None
    of_model = rates.Rates(attack, control_group, rates.measured(guesses.blind[member]))
    finding = rates.finding(attack_name, "inference", known, success, of_model, details)
    return replace(finding, sentence=_sentence(str(details["model"]), success, of_model, finding.verdict))


def with_rates(plain: Mapping[str, Any], of_model: rates.Rates) -> dict[str, Any]:
    """A finding of this module as plain data, with other rates, such as coarser ones; see `rates.with_rates`."""
    details = plain["details"]
    changed = rates.with_rates(plain, of_model)
    success = f"guess {details['attribute']}" if "attribute" in details else RECONSTRUCT
    return {**changed, "sentence": _sentence(str(details["model"]), success, of_model, str(changed["verdict"]))}


def _sentence(model: str, success: str, of_model: rates.Rates, verdict: str) -> str:
    attack, control = of_model.attack, of_model.control
    text = f"{model}: asking it, an attacker can {success} in {percent(attack.rate)} of the cases "
    text += f"({percent(attack.low)} to {percent(attack.high)}) for people it was trained on"
    if control is not None:
        text += f" and in {percent(control.rate)} ({percent(control.low)} to {percent(control.high)}) for others"
    text += f"; the most frequent value is right in {percent(of_model.baseline.rate)}. "
    return text + {
        rates.LEAK: "It remembers people it was trained on.",
        rates.NO_LEAK: "No more than it has learnt about everybody.",
        rates.TOO_WEAK: "That is no better than guessing, so it shows neither a leak nor its absence.",
    }.get(verdict, f"{verdict[0].upper()}{verdict[1:]}.")
