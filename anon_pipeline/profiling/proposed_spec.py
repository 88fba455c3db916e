"""The release.yaml that a profile proposes: a line per column with its reason, and `decide` where a person must decide.

The word `decide` takes the place of each value to be decided. A spec with this word cannot be read
(`anon_pipeline.spec`), so nothing is released before everything is decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import yaml

from anon_pipeline.errors import number_of
from anon_pipeline.profiling.column_names import named_by
from anon_pipeline.profiling.profile import Profile
from anon_pipeline.profiling.proposal import K, Proposal, share_text
from anon_pipeline.spec import UNDECIDED, ColumnType, Role, Source

#: The second line of a proposed spec. Its remarks are so exact that they are a hash of the table.
FOR_WHOM = (
    "# Its remarks are for whoever may see the table, since their figures are exact: who knows all other people can "
    "learn from them what the last one has. Remove them before anybody else reads this file."
)


@dataclass(frozen=True)
class Question:
    """A question that a person must decide: the place in the spec, and the choices."""

    place: str
    question: str


#: The question about the public domain of a column, for noisy questions, with an example of the notation.
DOMAIN = "what is public of it, known without this table? {}, or remove it"
OF_AGES = "{range: [0, 120], step: 1, why: ...}"
OF_NUMBERS = "{range: [least, most], step: 1, why: ...} with a codebook's ends (noise grows with the range)"
OF_DATES = "{values: ['2024-01-31', ...], why: ...} where few days are possible (dates have no range)"
OF_TEXTS = "{values: [a, b], why: ...}, or {unknown: true, why: ...} where nobody can list them"
#: The remark on categories that a file orders: some tools make them of the texts that people have.
OF_LEVELS = "; a release states its levels, so they must be those of a form or codebook"
#: Names of columns of years of age, whose range everybody knows.
AGES = ("age", "ages", "alter", "lebensalter", "edad", "eta", "idade", "leeftijd", "wiek")


def questions(profiled: Profile, asked_with_noise: bool = False) -> list[Question]:
    """All questions that must be decided before the proposed spec can run, the target first.

    Parameters
    ----------
    asked_with_noise : whether the section `differential_privacy` is proposed too
    """
    target = [] if profiled.target_named else [Question("target", _target(profiled))]
    without = [Question("missing_target", question)] if (question := _missing_target(profiled)) is not None else []
    of_source = [
        Question(f"source.{key}", question) for key, question in _asked_of_source(profiled, asked_with_noise).items()
    ]
    asked = []
    for proposal in profiled.columns:
        whole = ({"role": proposal.question} if proposal.question is not None else {}) | dict(proposal.asked)
        asked += [Question(f"columns.{proposal.name}.{key}", question) for key, question in whole.items()]
    return [*target, *without, *of_source, *asked, *(_questions_of_noise(profiled) if asked_with_noise else [])]


def _asked_of_source(profiled: Profile, asked_with_noise: bool) -> Mapping[str, str]:
    """The questions about the source, by key.

    The marks for "not known" are asked about where answers get noise: a synthetic release states them, and a mark that
    was found may be that of one person.
    """
    if not asked_with_noise or not profiled.missing:
        return profiled.asked
    marks = ", ".join(map(repr, profiled.missing))
    said = f"found: {marks}; a synthetic release states this list, so write what a form or codebook says, or []"
    return {**profiled.asked, "missing": said}


def _target(profiled: Profile) -> str:
    """The question for the target, where nobody has named it."""
    if profiled.target is None:
        guess = "no column is named as what is usually predicted; its role is to be decided, too"
        if profiled.is_wide:
            guess += "; or delete this file and begin again with --target, so that what says most of it is grouped"
    else:
        guess = f"{profiled.target} is proposed"
    return f"which column will be predicted from the release? {guess}"


def _missing_target(profiled: Profile) -> str | None:
    """The question where the proposed target has missing values."""
    missing = sum(proposal.missing for proposal in profiled.columns if proposal.name == profiled.target)
    if not missing:
        return None
    return (
        f"{profiled.target} is missing in {missing:,} of {number_of(profiled.rows, 'row', 'rows')}; write leave_out "
        "(these people are not in the release) or release (they are, and no model learns from them)"
    )


def _questions_of_noise(profiled: Profile) -> list[Question]:
    """Questions about unit, budget and public domains: answers from the table would reveal something of its people."""
    place = "differential_privacy"
    return [
        Question(f"{place}.unit", "who is protected? row, or {person: an identifier, groups: 1, rows: 1}"),
        Question(f"{place}.budget.subject", "a name for the people, whatever files they are in"),
        Question(f"{place}.budget.epsilon", "how much may all answers together tell of one of them? 1 is usual"),
        *(
            Question(f"{place}.domains.{proposal.name}", _domain_question(proposal))
            for proposal in _with_domain(profiled)
        ),
    ]


def _with_domain(profiled: Profile) -> list[Proposal]:
    return [proposal for proposal in profiled.columns if proposal.role not in (Role.IDENTIFIER, Role.EXCLUDE)]


def _domain_question(proposal: Proposal) -> str:
    """The question with an example that fits the column by its type and its name, never by its values."""
    examples = {ColumnType.NUMERIC: OF_NUMBERS, ColumnType.DATE: OF_DATES, ColumnType.CATEGORICAL: OF_TEXTS}
    is_age = proposal.type is ColumnType.NUMERIC and named_by(proposal.name, AGES)
    return DOMAIN.format(OF_AGES if is_age else examples[proposal.type])


def _section_of_noise(profiled: Profile) -> list[str]:
    asked = {
        question.place.removeprefix("differential_privacy."): question.question
        for question in _questions_of_noise(profiled)
    }
    return [
        "differential_privacy:",
        f"  unit: {UNDECIDED}  # {asked['unit']}",
        "  budget:",
        f"    subject: {UNDECIDED}  # {asked['budget.subject']}",
        f"    epsilon: {UNDECIDED}  # {asked['budget.epsilon']}",
        "    delta: 1.0e-6",
        "  domains:",
        *(
            f"    {_scalar(proposal.name)}: {UNDECIDED}  # {_domain_question(proposal)}"
            for proposal in _with_domain(profiled)
        ),
    ]


def propose_spec(profiled: Profile, dataset: str, source: Source, asked_with_noise: bool = False) -> str:
    """The text of a release.yaml; `source` is relative to the spec's folder."""
    source_keys = source.model_dump(mode="json", exclude_defaults=True) | dict(profiled.read)
    if source.database is not None or source.table_format is not None:
        del source_keys["path"]  # implied by the key of its address, or by the table
    source_keys |= {"missing": list(profiled.missing)} if profiled.missing else {}
    asked = questions(profiled, asked_with_noise)
    lines = [
        f"# Proposed by anon-pipeline from {_rows(profiled)}.",
        FOR_WHOM,
        f"# Every role is a guess until a person has decided it. Nothing runs while `{UNDECIDED}` stands on a line"
        + (":" if asked else "; it stands on none."),
        *(f"#   {_one_line(question.place)}: {_one_line(question.question)}" for question in asked),
    ]
    if profiled.key is not None:
        lines.append(
            f"# {_listed(profiled.key.columns)}: {100 * profiled.key.distinction:.1f} distinct combinations "
            f"per 100 people, which tell {share_text(profiled.key.separation)} of the pairs of people apart."
        )
    lines += [
        f"dataset: {_scalar(dataset)}",
        *(f"# {_one_line(note)}" for note in profiled.notes),
        *_source(source_keys, _asked_of_source(profiled, asked_with_noise)),
        f"target: {_scalar(str(profiled.target))}"
        if profiled.target_named
        else f"target: {UNDECIDED}  # {_one_line(_target(profiled))}",
        *(
            f"missing_target: {UNDECIDED}  # {_one_line(question)}"
            for question in [_missing_target(profiled)]
            if question
        ),
        "columns:",
        *(line for proposal in profiled.columns for line in _column(proposal)),
        "privacy:",
        f"  k_anonymity: {{k: {K}}}",
    ]
    protected = next(
        (
            proposal
            for proposal in profiled.columns
            if proposal.name == profiled.target and proposal.role is Role.SENSITIVE
        ),
        None,
    )
    if protected is not None:
        demand = _flow({"column": protected.name, "l": 2})
        lines.append(f"  l_diversity: {demand}  # {_why_diverse(profiled)}")
    if asked_with_noise:
        lines += _section_of_noise(profiled)
    return "\n".join(lines) + "\n"


def _why_diverse(profiled: Profile) -> str:
    """What two values in every class give, and what they cost where nearly everybody has the same value."""
    others, allowed = round(profiled.others * profiled.rows), profiled.rows // K
    if others >= allowed:
        return "nobody's value is certain; `sweep` says what this costs in accuracy"
    about = "about " if profiled.looked_at < profiled.rows else ""
    have = "person has" if others == 1 else "people have"
    return (
        f"nobody's value is certain. Only {about}{others:,} {have} another than the most frequent one, and every "
        f"class needs one of them: at most {others:,} classes, where k allows {allowed:,}. Leave this line out if the "
        "frequent value may be known of people; `sweep` says what it costs"
    )


def _column(proposal: Proposal) -> list[str]:
    missing = f", {proposal.missing:,} missing" if proposal.missing else ""
    keys: dict[str, object] = {"role": proposal.role.value, "type": str(proposal.type)}
    if proposal.format:
        keys["format"] = proposal.format[0] if len(proposal.format) == 1 else list(proposal.format)
    if proposal.levels and (proposal.role is not Role.EXCLUDE or proposal.question is not None):
        keys["levels"] = list(proposal.levels)
    if proposal.unit is not None:
        keys["unit"] = proposal.unit
    asked = ({"role": proposal.question} if proposal.question is not None else {}) | dict(proposal.asked)
    written = [f"{key}: {UNDECIDED if key in asked else _flow(value)}" for key, value in keys.items()]
    written += [f"{key}: {UNDECIDED}" for key in asked if key not in keys]
    why = f"  # {_one_line('; '.join(asked.values()))}" if asked else ""
    return [
        f"  # {proposal.distinct:,} distinct value{'s' * (proposal.distinct != 1)}{missing}; {_one_line(proposal.why)}"
        + OF_LEVELS * ("levels" in keys),
        f"  {_scalar(proposal.name)}: {{{', '.join(_plain(line) for line in written)}}}{why}",
    ]


def _source(keys: dict[str, object], asked: Mapping[str, str]) -> list[str]:
    """The source on one line, or one line per key where there is a question about it."""
    if not asked:
        return [f"source: {_flow(keys)}"]
    plain = [f"  {key}: {_plain(_flow(value))}" for key, value in keys.items() if key not in asked]
    open_ = [f"  {key}: {UNDECIDED}  # {_one_line(question)}" for key, question in asked.items()]
    return ["source:", *plain, *open_]


def _plain(line: str) -> str:
    """A value as YAML on one line, without the end mark of a document."""
    return line.replace("\n...", "")


def _rows(profiled: Profile) -> str:
    if profiled.looked_at == profiled.rows:
        return number_of(profiled.rows, "row", "rows")
    looked_at = f"{profiled.looked_at:,} of {profiled.rows:,} rows"
    return f"{looked_at}, chosen by a hash of their position; more than about 1,000 distinct values are estimates"


def _listed(names: tuple[str, ...]) -> str:
    return _one_line(" and ".join([", ".join(names[:-1])] * (len(names) > 1) + [names[-1]]))


def _one_line(text: str) -> str:
    """A text without line breaks, which names of columns may have and which would end a comment."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


class _Dumper(yaml.SafeDumper):
    """A writer of YAML on one line, which quotes a text `decide`, so that it is read as a text."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if text == UNDECIDED or not text.isprintable() else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _text)


def _scalar(text: str) -> str:
    """A text as YAML, quoted where it needs to be."""
    return _flow(text).removesuffix("\n...")


def _flow(content: object) -> str:
    """Plain data as YAML on one line."""
    return yaml.dump(
        content, Dumper=_Dumper, width=float("inf"), allow_unicode=True, default_flow_style=True, sort_keys=False
    ).removesuffix("\n")
