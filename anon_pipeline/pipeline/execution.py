"""Make one step or ask one battery of checks: load the results that it needs, and store its own result with a record.

A result is only used if it was made from the currently stored results, over all steps back to the source.
"""

from __future__ import annotations

from anon_pipeline.pipeline.checks.answers import keep_answers
from anon_pipeline.pipeline.expectations.check_records import keep_records
from anon_pipeline.pipeline.expectations.questions import Answer, validate
from anon_pipeline.pipeline.graph import Graph, Part
from anon_pipeline.pipeline.stages import Stage, Stages
from anon_pipeline.pipeline.step import CheckDef, Run, StepDef, StepResult


def make(graph: Graph, step: StepDef, run: Run) -> StepResult:
    """Make a step and store its result.

    Raises
    ------
    InputError
        Where something that it needs is absent, stale or altered.
    """
    sources, needs = needs_of(graph, step, run)
    facts: dict[str, object] = {}
    with Stages(run.home, run.spec).store(step.name, sources, facts) as folder:
        result = step.make(run, folder, **needs)
        facts.update(result.facts)
    return result


def answer(graph: Graph, checks: CheckDef, run: Run) -> list[Answer]:
    """Ask a battery of checks, and store the answers for the release, with the identities of the judged files.

    Raises
    ------
    InputError
        Where something that they need is absent, stale or altered.
    """
    sources, needs = needs_of(graph, checks, run)
    facts = checks.facts(run.spec)  # before the checks are asked, so that a later change of them is noticed
    validated = validate(checks.ask(run, **needs), run.processes, f"{run.spec.dataset}.{checks.name}")
    keep_records(run.home, run.spec.dataset, checks.name, validated.records)
    keep_answers(Stages(run.home, run.spec), checks.name, sources, validated.answers, facts)
    return validated.answers


def needs_of(graph: Graph, part: Part, run: Run) -> tuple[dict[str, Stage], dict[str, Stage]]:
    """The stored results that a part is made from: by their own names, and by the names of the part's needs."""
    stages = Stages(run.home, run.spec)
    known: dict[str, Stage] = {}

    def trace(name: str) -> Stage:
        """The stage of a result by its record, after the records of all results that it was made from."""
        if name not in known:
            known[name] = stages.known(name, made_from(name))
        return known[name]

    def made_from(name: str) -> dict[str, Stage]:
        return {source: trace(source) for source in graph.sources(graph.named(name)).values()}

    sources = graph.sources(part)
    loaded = {name: stages.load(name, made_from(name)) for name in dict.fromkeys(sources.values())}
    return loaded, {need: loaded[name] for need, name in sources.items()}
