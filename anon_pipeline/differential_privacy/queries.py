"""Questions from text to answer: each is read, planned, reserved, counted, drawn with noise, and stored."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from anon_pipeline.differential_privacy import accounting, answering, reading
from anon_pipeline.differential_privacy.budget import Allowance, Budget, Question, State, question_keys
from anon_pipeline.differential_privacy.mechanisms import require_library
from anon_pipeline.differential_privacy.plan import Plan
from anon_pipeline.differential_privacy.reading import Counting, asked_of
from anon_pipeline.differential_privacy.same_source import SeenSource
from anon_pipeline.differential_privacy.statement import parse
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.keys import private_key
from anon_pipeline.spec import DifferentialPrivacy, ReleaseSpec, Strict
from anon_pipeline.spec.sentences import sentences
from anon_pipeline.spec.written import PlainLoader

#: A question with groups that nobody listed uses one part in this many of the delta that is kept for thresholds.
SHARE_OF_THRESHOLDS = 10


@dataclass(frozen=True)
class Share:
    """The cost that a question may have: epsilon at the budget's delta, or rho."""

    epsilon: float | None = None
    rho: float | None = None

    def nano_rho(self, asked: DifferentialPrivacy) -> int:
        """
        Raises
        ------
        InputError
            Where neither or both are stated, or the number cannot be used.
        """
        if self.rho is not None and self.epsilon is None:
            return accounting.nano_of(self.rho)
        if self.epsilon is not None and self.rho is None:
            return accounting.nano_for(self.epsilon, asked.conversion_delta)
        raise InputError("say what the question may cost: --epsilon 0.1, or --rho 0.001")


@dataclass(frozen=True)
class Answer:
    """An answer that may leave.

    Attributes
    ----------
    content : columns, rows of figures with intervals, unit, mechanisms, cost and notes
    new : whether it was charged to the budget; a question asked again costs nothing
    state : the state of the budget afterwards
    """

    content: dict[str, Any]
    new: bool
    state: State

    def to_json(self) -> dict[str, Any]:
        return {**self.content, "new": self.new, "budget": self.state.to_json()}


def plan_of(spec: ReleaseSpec, text: str, share: Share) -> Plan:
    """The plan of a question: its measurements and cost; reads nobody.

    Raises
    ------
    InputError
        For a question that may not be asked, or a share that is too small or too large.
    """
    require_library()
    asked = asked_of(spec)
    statement = parse(text, spec, asked)
    delta = accounting.atto_of(asked.budget.thresholds) // SHARE_OF_THRESHOLDS
    plan = Plan.of(statement, asked, share.nano_rho(asked), delta)
    plan.described()  # fails where the noise of a measurement cannot be drawn
    return plan


def preview(spec: ReleaseSpec, text: str, share: Share) -> dict[str, Any]:
    """Scales, half-widths and cost of a question; nothing is read and nothing is spent."""
    plan = plan_of(spec, text, share)
    return {"dataset": spec.dataset, "query": text, **answering.about(plan), "cost": _cost(plan)}


@dataclass(frozen=True)
class Prepared:
    """A question that is ready to be asked: its plan, its key in the ledger, and the budget that pays for it."""

    spec: ReleaseSpec
    text: str
    plan: Plan
    question: Question
    budget: Budget
    seen: SeenSource

    @property
    def known(self) -> bool:
        """Whether the question was answered before, and so costs nothing."""
        return self.budget.stored(*self.question.keys) is not None

    def ask(self, engine: Counting) -> Answer:
        """See the function `ask`."""
        readable = reading.readable(self.spec)

        def answer() -> bytes:
            try:
                exact = answering.read(self.plan, readable, lambda query: engine.aggregated(readable, query))
            except InputError as error:
                self.seen.require_same(reading.SPENT)
                raise InputError(f"query: {self.spec.source.path} {reading.broken(error)}") from None
            self.seen.require_same(reading.SPENT)
            drawn = answering.draw(self.plan, exact)
            content = {"dataset": self.spec.dataset, "query": self.text, **drawn, "cost": _cost(self.plan)}
            return json.dumps(content, sort_keys=True).encode()

        # The header is checked before anything is spent; the rest of the source is read after the reservation.
        reading.check_header(engine, readable, "query")
        self.seen.require_same(reading.UNSPENT)
        content, new = self.budget.ask(self.question, answer)
        return Answer(json.loads(content), new, self.budget.state())


def prepare(spec: ReleaseSpec, home: Home, text: str, share: Share) -> Prepared:
    """Plan a question and compute its key; reads nobody and spends nothing.

    Raises
    ------
    InputError
        For a question that may not be asked.
    """
    plan = plan_of(spec, text, share)
    asked = asked_of(spec)
    key = private_key(spec, home)
    parameters = {"query": plan.statement.to_json(), "cost": [plan.cost.nano_rho, plan.cost.atto_delta]}
    # A remark changes no answer, so it is in no key; former versions of the program had it in theirs.
    remarks: dict[str, Any] = {"domains": {"__all__": {"why"}}}
    policies = [asked.model_dump(mode="json", include={"unit", "domains"}, exclude=out) for out in (remarks, None)]
    seen, subject = SeenSource.now(spec, key), asked.budget.subject
    keys = [
        each
        for policy in policies
        for each in question_keys(key, subject, spec.dataset, seen.versions, {**parameters, "policy": policy})
    ]
    question = Question.of(spec.dataset, keys, " ".join(text.split()), plan.cost)
    return Prepared(spec, text, plan, question, Budget(home, Allowance.of(asked)), seen)


def ask(spec: ReleaseSpec, home: Home, engine: Counting, text: str, share: Share) -> Answer:
    """Answer a question, and spend its cost.

    Raises
    ------
    InputError
        For a question that may not be asked; nothing was spent. After the reservation the cost stays spent, whatever
        goes wrong.
    Refused
        Where the budget does not suffice.
    """
    return prepare(spec, home, text, share).ask(engine)


def _cost(plan: Plan) -> dict[str, float]:
    delta = plan.asked.conversion_delta
    return {
        "rho": plan.cost.nano_rho / accounting.NANO,
        "epsilon": accounting.epsilon_of(plan.cost.nano_rho, delta),
        "delta": delta,
        "threshold_delta": plan.cost.atto_delta / accounting.ATTO,
    }


class NamedQuery(Strict):
    """One question of a file: a name, the SQL, and what it may cost."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    sql: str = Field(min_length=1)
    epsilon: float | None = Field(default=None, gt=0, le=100)
    rho: float | None = Field(default=None, gt=0, le=100)

    @property
    def share(self) -> Share:
        return Share(self.epsilon, self.rho)


def read_queries(spec: ReleaseSpec) -> list[NamedQuery]:
    """The questions of the file that the spec names.

    Raises
    ------
    InputError
        For a file that cannot be read, or a question that may not be asked; each is planned, and nothing is spent.
    """
    asked = asked_of(spec)
    if asked.queries is None:
        raise InputError("differential_privacy.queries: is missing; name a file of questions in the folder of the spec")
    file = Path(str(asked.queries))
    path = spec.folder / file
    if file.is_absolute() or ".." in file.parts:
        raise InputError("differential_privacy.queries: names a file in the folder of the spec")
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=PlainLoader)  # noqa: S506 (a SafeLoader)
    except OSError as error:
        raise InputError(f"differential_privacy.queries: {file} cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise InputError(f"differential_privacy.queries: {file} is not valid YAML") from None
    if not isinstance(content, list) or not content:
        raise InputError(f"{file}: is a list of questions, each with name, sql, and epsilon or rho")
    queries = []
    for number, item in enumerate(content, start=1):
        try:
            query = NamedQuery.model_validate(item)
            plan_of(spec, query.sql, query.share)
        except ValidationError as error:
            raise InputError(f"{file}: question {number}: {'; '.join(sentences(error))}") from None
        except InputError as error:
            raise InputError(f"{file}: question {number}: {error}") from None
        queries.append(query)
    if len({query.name for query in queries}) < len(queries):
        raise InputError(f"{file}: two questions have one name; give each its own")
    return queries
