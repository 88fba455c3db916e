"""The descriptions of assets on Dagster's pages: its content, the source of its figures, the remedy if it fails."""

import inspect
from typing import cast

from anon_pipeline.pipeline.graph import Graph
from anon_pipeline.pipeline.step import StepDef
from anon_pipeline.privacy.base import PrivacyModel

_PRIVATE = "**Private**: its files never leave `private/`; what this page shows are counts and shares."


def described(step: StepDef, graph: Graph) -> str:
    """The description of an asset of a dataset, as Markdown; lists show its first sentence.

    A step without paragraphs in this module is described by the docstring of its function.
    """
    spec = graph.spec
    known = {**_PARAGRAPHS, **_OF_SYNTHETIC} if spec.is_synthetic else _PARAGRAPHS
    if step.name not in known:
        return inspect.getdoc(step.make) or step.name
    return "\n\n".join(known[step.name]).format(
        dataset=spec.dataset,
        source=spec.source.path,
        k=0 if spec.is_synthetic else spec.k,
        target=spec.target,
        quasi_identifiers=", ".join(map(_code, spec.quasi_identifiers)),
        demands="\n".join(f"- {demand.demand()}" for demand in cast(tuple[PrivacyModel, ...], spec.privacy)),
        folds=spec.utility.folds,
        people="" if spec.is_synthetic else graph.people,
        window=0 if spec.across_releases is None else spec.across_releases.window - 1,
    )


def _code(name: str) -> str:
    """A name as code in Markdown, whatever characters it has."""
    return f"`` {name} ``" if "`" in name else f"`{name}`"


_PARAGRAPHS = {
    "raw_data": (
        "The people of {source}, typed as the spec says, without excluded columns.",
        "**Checked** before anything else is made: the columns, their types, at least k = {k} people, a target, and "
        "nobody twice.",
        "**If it fails**, the sentence names the column and what to change in the file or in `release.yaml`.",
        _PRIVATE,
    ),
    "masked_data": (
        "The people after masking, column by column, as the steps of the spec say. Private: they are not grouped yet.",
    ),
    "followed_people": (
        "The people with their cohort: who was in the same class of each of the last {window} releases, or in none. "
        "Without those who are held back, of whom no later step knows. Private.",
    ),
    "trained_model": (
        "The model of {target} that guides the grouping, fitted once on everybody and once without each fold.",
        "People whom it thinks alike are put together, so that a model of the release learns what one of the source "
        "would have learned.",
        _PRIVATE,
    ),
    "predictions": (
        "What the model says of everybody, summed per distinct person.",
        "A distinct person (a cell) is one combination of {quasi_identifiers}. From here on only cells are looked at, "
        "never rows. Where there were too many of them, `coarsened` names the columns that were put into bins.",
        _PRIVATE,
    ),
    "anonymizer_tree": (
        "The decision tree that puts at least {k} people who look alike, also to the model, into a class.",
        "Every class meets every demand of the spec:\n\n{demands}",
        "**If it fails**, no grouping meets a demand; the sentence names it and the best value that was reached. Lower "
        "it, or let a few people be left out with `suppression`.",
        _PRIVATE,
    ),
    "anonymized_table": (
        "The candidate for release: everybody as their class shows itself.",
        "Nobody reads it before its checks have passed; they count it again from its file and take nothing from the "
        "tree.",
        "**If a check fails**, nothing is published, and what was published before stands.",
        _PRIVATE,
    ),
    "aggregated_table": (
        "The candidate for release: counts and means per group of people, and nobody's row.",
        "Nobody reads it before its checks have passed. They read its file, add the people up once more by other code, "
        "and hold its counts, its means and what is left out against that. No model is trained.",
        "**If a check fails**, nothing is published, and what was published before stands.",
        _PRIVATE,
    ),
    "utility": (
        "What a model is worth that is trained on the release, beside one trained on the source.",
        "Cross-validated in {folds} folds: in each the classes are formed anew from the training part, and both models "
        "are scored on the same untouched people. An interval that includes zero means that no loss was seen, not "
        "that there is none.",
    ),
    "attack_audit": (
        "What an adversary makes of it: a twin of the release, made without some control people, is attacked on people "
        "who are in it and on those who are not; so are models trained on people and on releases.",
    ),
    "frontier": (
        "The privacy-utility trade-off: what each setting under `frontier:` in the spec would cost and protect. "
        "{dataset}_release does not make it: materialize it by its own button, after {people}, or with "
        "`anon-pipeline sweep`.",
    ),
    "dp_answers": (
        "Noisy answers to the questions of the spec's file, under the budget of the people they are about.",
        "{dataset}_statistics makes them, and no release waits for them. A question that was asked of this source "
        "before costs nothing.",
        "**If it fails**, the budget does not suffice, and none of the new questions was asked; "
        "`anon-pipeline budget show` says what is left.",
    ),
    "dp_statistics": ("The published table of noisy statistics, with their intervals and what they cost.",),
    "destinations": (
        "The copies of the release, at the places that the spec names under `publish`.",
        "**If it fails**, the release stands all the same, and the sentence says which place does not have it yet. Run "
        "again, or `anon-pipeline releases deliver VERSION`.",
    ),
    "release": (
        "The published release: read again from the disk, counted once more, entered into the ledger.",
        "`version` names it, `folder` says where it lies, with its manifest and its report. The same source and spec "
        "give the same release: `state` then says that it stands already.",
        "**To check it**: `anon-pipeline releases verify`. **To pass it on**: "
        "`anon-pipeline report VERSION --as markdown`, `html` or `pdf`.",
        "**If it fails**, nothing has changed under `releases/`; the sentence names the step to make again.",
    ),
}

#: The descriptions for synthetic releases, where they differ.
_OF_SYNTHETIC = {
    "raw_data": (
        "The source {source}: it is there and has the columns of the spec. Nobody is read or copied.",
        "**If it fails**, the sentence names the column and what to change in the file or in `release.yaml`.",
    ),
    "dp_measurements": (
        "Noisy counts of the people of {source}: the only step that reads them.",
        "The cost is reserved in the ledger of the budget before noise is drawn, and is never given back. Made again "
        "of the same source and spec, the stored counts are taken and nothing is spent.",
        "**If it fails** with exit code 3, the budget of the subject does not suffice; the sentence says what is left.",
    ),
    "synthetic_table": (
        "Rows drawn from the distribution that fits the noisy counts. It sees no people.",
        "**If a check fails**, nothing is published, and what was published before stands.",
    ),
    "dp_model": (
        "A model of {target}, made of the noisy counts or the synthetic rows, in MLflow's format. It sees no people.",
    ),
    "release": (
        "The published synthetic release: the table, the noisy counts, and what they cost, entered into the ledger.",
        "**To check it**: `anon-pipeline releases verify`, and `anon-pipeline budget verify` for what was spent.",
    ),
}
