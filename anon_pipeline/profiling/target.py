"""The column that is proposed as the target: what is usually predicted, by its name."""

from __future__ import annotations

from anon_pipeline.engine.base import ColumnSurvey, Survey
from anon_pipeline.profiling import identifiers
from anon_pipeline.profiling.column_names import named_by, words_of
from anon_pipeline.profiling.reading import type_of
from anon_pipeline.profiling.special_categories import special_category
from anon_pipeline.spec import ColumnType

#: The largest number of distinct values of a target.
TARGET_VALUES = 20
#: Names of one word of columns that are usually predicted.
TARGETS = (
    "target",
    "label",
    "class",
    "outcome",
    "response",
    "income",
    "churn*",
    "default*",
    "readmitted",
    "survived",
    "left",
    "attrition",
    "fraud*",
    "y",
)
#: Names of numbers that are usually predicted, for tables where no column of few values has such a name.
NUMBERS = ("target", "label", "outcome", "response", "income", "price", "cost", "costs", "charges", "score", "y")
#: Beside the first of these, the second is a coordinate.
COORDINATES = ("x", "y")
#: The category of Art. 9 that is usually studied, and so is the target where no column has the name of a target.
STUDIED = "health"
#: Names of columns with the file from which a row came.
PARTS = ("split", "fold", "partition", "subset")


def proposed_target(survey: Survey) -> str | None:
    """A column of two to twenty values with the name of a target, else a number with such a name, else one of health.

    A column with missing values is taken only where no complete one is possible. Where there is no such column, a
    person must state what they want to predict; being the last column is no reason.
    """
    names = {column.name.casefold() for column in survey.columns}
    coordinates = COORDINATES if names.issuperset(COORDINATES) else ()
    possible = [
        column
        for column in survey.columns
        if column.distinct >= 2
        and not named_by(column.name, PARTS)
        and identifiers.by_name(column.name, 0) is None
        and not (column.name.casefold() in coordinates and column.distinct > TARGET_VALUES)
    ]
    whole = [column for column in possible if column.known == survey.rows]
    mostly = [column for column in possible if 2 * column.known >= survey.rows]
    return _among(whole) or _among(mostly)


def _among(known: list[ColumnSurvey]) -> str | None:
    few = [column.name for column in known if column.distinct <= TARGET_VALUES]
    numbers = [column.name for column in known if type_of(column) is ColumnType.NUMERIC]
    for names, listed in ((few, TARGETS), (numbers, NUMBERS)):
        for name in reversed(names):
            if len(words_of(name)) == 1 and named_by(name, listed):
                return name
    studied = (name for name in reversed(few) if (found := special_category(name, [])) and found.category == STUDIED)
    return next(studied, None)
