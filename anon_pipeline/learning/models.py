"""Models before they are fitted: built-in ones, those of a factory or a store, and the encoding of their columns."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from anon_pipeline.arrays import FloatArray
from anon_pipeline.errors import InputError
from anon_pipeline.spec import BuiltInModel, ColumnType, ImportedModel, LoggedModel
from anon_pipeline.spec.permission import require_code

#: Anything with fit, predict, get_params and set_params; predict_proba where probabilities are asked for.
Estimator = Any
ModelChoice = BuiltInModel | ImportedModel | LoggedModel
#: Fetches the scikit-learn model behind an MLflow URI; given by the pipeline layer, which alone knows MLflow.
LoadLogged = Callable[[str], Estimator]
#: Native categories are single bytes in HistGradientBoosting; rarer ones beyond this many share a code.
MOST_CODES = 254
#: One column per category: this bounds the width of the encoded table, rarer categories share a column.
MOST_COLUMNS = 64
#: The fewest and the most rounds of boosting, and the number of people from which it takes the most. More rounds learn
#: small tables by heart (docs/decisions/models.md).
ROUNDS, LARGE = (40, 100), 10_000
#: Up to so many classes boosting takes all its rounds. Of more it takes fewer, since each round has a tree for each
#: class; but never fewer rounds than this.
FEW_CLASSES, FEWEST_ROUNDS = 4, 20
#: The penalty on the answers of boosting's trees where classes are learned (docs/decisions/models.md). Without one, a
#: leaf with next to nobody of a rare class answers with odds without a bound, and the next rounds make them worse.
PENALTY = 5.0
T = TypeVar("T")


class Task(StrEnum):
    """What the model learns."""

    CLASSIFICATION = "classification"
    REGRESSION = "regression"


def task_of(target_type: ColumnType) -> Task:
    """Categories are classified; numbers and dates are estimated."""
    return Task.CLASSIFICATION if target_type is ColumnType.CATEGORICAL else Task.REGRESSION


def name_of(choice: ModelChoice) -> str:
    """The model as the spec writes it: a built-in name, `package.module:factory` or an MLflow URI."""
    if isinstance(choice, ImportedModel):
        return choice.import_
    return choice.mlflow if isinstance(choice, LoggedModel) else choice


def rounds_of(people: int, classes: Sequence[Any] | npt.NDArray[Any] | None) -> int:
    """The number of rounds of boosting that suits a table.

    Parameters
    ----------
    people : how many people the table has that the model learns from
    classes : the classes of the target; None for a number
    """
    rounds = min(ROUNDS[1], max(ROUNDS[0], people * ROUNDS[1] // LARGE))
    if classes is None or len(classes) <= FEW_CLASSES:
        return rounds
    return max(FEWEST_ROUNDS, rounds * FEW_CLASSES // len(classes))


def build_model(
    choice: ModelChoice,
    task: Task,
    feature_types: dict[str, ColumnType],
    seed: int,
    load_logged: LoadLogged | None = None,
    rounds: int = ROUNDS[1],
) -> Estimator:
    """An unfitted estimator that accepts the frame of features as it is.

    Parameters
    ----------
    choice
        A built-in name; `import:` a factory, whose Pipeline is used as it is and whose bare estimator gets one-hot
        categories and imputed, scaled numbers; or a model logged in MLflow, used as it is and fitted anew.
    feature_types
        The columns of the frame, in order. Dates count as numbers.
    seed
        For every `random_state` that the estimator leaves open; scikit-learn takes its last 32 bits.
    rounds
        Of boosting: see `rounds_of`.

    Raises
    ------
    InputError
        If an imported or logged model is not allowed or cannot be had, or does not suit the task.
    """
    from sklearn.base import clone
    from sklearn.pipeline import Pipeline, make_pipeline

    seed %= 2**32
    if not isinstance(choice, ImportedModel | LoggedModel):
        return _built_in(choice, task, feature_types, seed, rounds)
    name = name_of(choice)
    if isinstance(choice, ImportedModel):
        field = "guide.model.import"
        estimator = _from_factory(field, name)
    else:
        field = "guide.model.mlflow"
        if load_logged is None:
            raise InputError(f"{field}: {name} cannot be loaded because no model store is connected here")
        load = load_logged
        estimator = quietly(field, name, "load", lambda: load(name), passing=(InputError,))
    if isinstance(estimator, type) or not all(
        hasattr(estimator, method) for method in ("fit", "predict", "get_params", "set_params")
    ):
        raise InputError(
            f"{field}: {name} gives a {type(estimator).__name__}, not a scikit-learn estimator; "
            "it must give an object with fit, predict, get_params and set_params"
        )
    kind = _kind(estimator)
    if kind is not None and kind is not task:
        raise InputError(f"{field}: {name} is made for {kind}, but the target asks for {task}; name another model")
    if isinstance(choice, ImportedModel) and not isinstance(estimator, Pipeline):
        estimator = make_pipeline(_one_hot(feature_types), estimator)

    def unfitted_and_seeded() -> Estimator:
        fresh = clone(estimator)
        settings = fresh.get_params()
        open_ = [key for key in settings if key.split("__")[-1] == "random_state" and settings[key] is None]
        return fresh.set_params(**dict.fromkeys(open_, seed)) or fresh  # a frozen estimator gives nothing

    return quietly(field, name, "be copied", unfitted_and_seeded)


def _built_in(
    name: BuiltInModel, task: Task, feature_types: dict[str, ColumnType], seed: int, rounds: int
) -> Estimator:
    from sklearn import ensemble, linear_model, tree
    from sklearn.pipeline import make_pipeline

    from anon_pipeline.learning.linear import ExactLogisticRegression

    classify = task is Task.CLASSIFICATION
    estimator: Estimator
    if name == "gradient_boosting":
        make = ensemble.HistGradientBoostingClassifier if classify else ensemble.HistGradientBoostingRegressor
        # No early stopping: it wants a stratified hold-out, which a class of one cannot give.
        # On Adult 100 rounds at .1 reach AUC .9297, 200 at .05 .9298 in twice the time.
        estimator = make(
            max_iter=rounds,
            learning_rate=0.1,
            l2_regularization=PENALTY if classify else 0.0,
            early_stopping=False,
            # The columns as `_coded` orders them: numbers first.
            categorical_features=np.arange(len(feature_types)) >= len(_split(feature_types)[0]),
            random_state=seed,
        )
        return make_pipeline(_coded(feature_types), estimator)
    if name == "random_forest":
        make = ensemble.RandomForestClassifier if classify else ensemble.RandomForestRegressor
        # Each tree has a seed of its own, so fitting on all threads is safe; `fit_model` sees to the predictions.
        estimator = make(150, min_samples_leaf=3, n_jobs=-1, random_state=seed)
        return make_pipeline(_coded(feature_types), estimator)
    if name == "decision_tree":
        make = tree.DecisionTreeClassifier if classify else tree.DecisionTreeRegressor
        return make_pipeline(_coded(feature_types), make(min_samples_leaf=20, random_state=seed))
    estimator = ExactLogisticRegression(max_iter=1000) if classify else linear_model.Ridge(solver="cholesky")
    return make_pipeline(_one_hot(feature_types), estimator)


def _split(feature_types: dict[str, ColumnType]) -> tuple[list[str], list[str]]:
    """The names of the numeric and of the categorical columns."""
    categorical = [name for name, type_ in feature_types.items() if type_ is ColumnType.CATEGORICAL]
    return [name for name in feature_types if name not in categorical], categorical


def _none_to_nan(frame: pd.DataFrame) -> npt.NDArray[np.object_]:
    """Replace None by NaN: scikit-learn treats NaN as missing, but None as a category."""
    values = frame.to_numpy(dtype=object, copy=True)
    values[frame.isna().to_numpy()] = np.nan
    return values


def _within_float32(frame: pd.DataFrame) -> FloatArray:
    """Clip numbers to float32, in which trees compare them; true infinity stays, and is an error."""
    values = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    most = float(np.finfo(np.float32).max)
    return np.where(np.isinf(values), values, np.clip(values, -most, most))


def _coded(feature_types: dict[str, ColumnType]) -> Estimator:
    """Numbers as they are, then categories as codes; missing and unseen categories become NaN, which trees accept."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    from anon_pipeline.learning.category_codes import CategoryCodes

    numeric, categorical = _split(feature_types)
    encoder = CategoryCodes(
        handle_unknown="use_encoded_value",
        unknown_value=np.nan,
        encoded_missing_value=np.nan,
        max_categories=MOST_CODES,
    )
    return ColumnTransformer(
        [
            ("numeric", FunctionTransformer(_within_float32), numeric),
            ("categorical", make_pipeline(FunctionTransformer(_none_to_nan), encoder), categorical),
        ]
    )


def _one_hot(feature_types: dict[str, ColumnType]) -> Estimator:
    """Numbers without lone extremes, imputed (with an indicator) and scaled, then a column per category.

    A missing category is one of its own.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    from anon_pipeline.learning.category_codes import CategoryColumns
    from anon_pipeline.learning.linear import Winsorizer

    numeric, categorical = _split(feature_types)
    imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    encoder = CategoryColumns(handle_unknown="infrequent_if_exist", max_categories=MOST_COLUMNS, sparse_output=False)
    return ColumnTransformer(
        [
            ("numeric", make_pipeline(Winsorizer(), imputer, StandardScaler()), numeric),
            ("categorical", make_pipeline(FunctionTransformer(_none_to_nan), encoder), categorical),
        ]
    )


def _from_factory(field: str, path: str) -> Estimator:
    """The return value of the function at `package.module:factory`."""
    require_code(field, path)
    module_name, _, function_name = path.partition(":")
    problem = None
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        problem = f"there is no module {error.name}; check the path and that its package is installed"
    except Exception as error:
        problem = f"importing the module {module_name} raises {type(error).__name__}; import it in Python to see why"
    if problem is None and not hasattr(module, function_name):
        problem = f"the module {module_name} has no function {function_name}; check the name"
    if problem is None and not callable(getattr(module, function_name)):
        problem = f"{function_name} is not a function; name one that takes nothing and returns an estimator"
    if problem is not None:
        raise InputError(f"{field}: {path} cannot be used: {problem}")
    return quietly(field, path, "be made", getattr(module, function_name))


def _kind(estimator: Estimator) -> Task | None:
    """The task that an estimator declares; None where it declares none."""
    from sklearn.base import is_classifier, is_regressor

    try:
        if is_classifier(estimator):
            return Task.CLASSIFICATION
        return Task.REGRESSION if is_regressor(estimator) else None
    except Exception:  # other libraries' estimators may lack the tags of this version of scikit-learn
        return None


def quietly(
    field: str, name: str, verb: str, function: Callable[[], T], passing: tuple[type[Exception], ...] = ()
) -> T:
    """Run foreign code; of an exception only the type is passed on, because its text may hold a value of a person.

    Raises
    ------
    InputError
        If the code fails.
    """
    try:
        return function()
    except (Exception, SystemExit) as error:
        if isinstance(error, passing):
            raise
        kind = type(error).__name__
    # Raised here and not in the handler: `from None` would hide the original, but leave it in __context__.
    raise InputError(
        f"{field}: {name} failed to {verb} ({kind}; its own message is withheld because it may quote data); "
        "try the model by hand on the same columns, or choose a built-in one"
    )
