"""What `across_releases` asks of the rest of a spec: whom it follows, and what it does not go with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anon_pipeline.spec.parts import AcrossReleases

if TYPE_CHECKING:
    from anon_pipeline.spec.release import ReleaseSpec


def require_following(spec: ReleaseSpec, asked: AcrossReleases) -> None:
    """Check that people can be followed, and that nothing else in the spec breaks what is promised them.

    Raises
    ------
    ValueError
        If it does not hold.
    """
    if spec.person is None:
        raise ValueError("across_releases: nobody can be followed; name their identifier: person: <column>")
    if spec.columns[spec.person].steps:
        raise ValueError(f"person: {spec.person!r} has steps; people are followed by the identifier as it is")
    if spec.population is not None:
        raise ValueError("across_releases: does not go with a demand on a population")
    if spec.audit.control == "held_out":
        raise ValueError("across_releases: does not go with audit.control: held_out; leave it at twin")
    if any(column.strict for column in spec.columns.values()):
        raise ValueError("across_releases: does not go with a strict hierarchy, since cohorts stay together")
    if asked.departures == "in_company":
        _require_own_values(spec)


def _require_own_values(spec: ReleaseSpec) -> None:
    """People are masked before anybody is withheld: a mean of others would tell who of them was still in the table."""
    of_columns = {
        f"columns.{name}.steps.{number}": step
        for name, column in spec.columns.items()
        for number, step in enumerate(column.steps)
    }
    of_table = {f"steps.{number}": step for number, step in enumerate(spec.steps)}
    for place, step in (of_columns | of_table).items():
        if not step.of_own_values:
            raise ValueError(
                f"{place}: what {step.technique} shows follows from other people too, also from those who are withheld "
                "(departures: in_company), and so tells who has left; take a step that looks at one value alone, or "
                "departures: at_once"
            )
