"""What grouping again tells of Adult's people, and what the demand costs, for settings of chance (enforce.py).

Run: python -m benchmarks.replayed [--keys 3] [--losses 40]
Adult, k = 10, two incomes per class, guided by gradient boosting out of fold; the audit counts the odds of 600 people
per key. Then Adult, and 600 made people whose illness hangs on their age (k = 5), under demands that only a mixture of
unlike people meets: with near classes alone, and with unlike ones paired (ladder.py). At last, how much Adult's loss
moves with the key: by default, and with unions of any size that may stay by chance. Information lost is the mean over
the quasi-identifiers.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_predict

from anon_pipeline.anonymize import encoding, enforce, ladder
from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.arrays import FloatArray
from anon_pipeline.audit import regrouping
from anon_pipeline.keys import Key
from anon_pipeline.privacy.base import PrivacyModel
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.privacy.t_closeness import TCloseness
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.tables import Cells

ADULT = Path(__file__).parents[1] / "data/adult"
PEOPLE = 600
#: Constants that replace those of enforce.py, by the name of the row.
SETTINGS: dict[str, dict[str, float]] = {
    "no chance": {"STAYS": 0.0, "STAYS_ELSE": 0.0, "WHOLE": 0.0, "STAYS_WHOLE": 0.0, "PASSED": 0.0},
    "left 10 %": {"WHOLE": 0.10},
    "the default": {},
    "left 20 %": {"WHOLE": 0.20},
}
#: The largest size of a union that may stay by chance.
SIZES: dict[str, float] = {"the default": enforce.LARGEST, "unions of any size stay": 1e9}
TWO_INCOMES = LDiversity(column="income", l=2)
ADULTS_MIXTURES: dict[str, PrivacyModel] = {
    "t-closeness .3": TCloseness(column="income", t=0.3),
    "t-closeness .2": TCloseness(column="income", t=0.2),
    "2-diversity": TWO_INCOMES,
}
MIXTURES: dict[str, PrivacyModel] = {
    "2-diversity": LDiversity(column="ill", l=2),
    "t-closeness .4": TCloseness(column="ill", t=0.4),
    "t-closeness .3": TCloseness(column="ill", t=0.3),
    "t-closeness .2": TCloseness(column="ill", t=0.2),
}


def cells_of(people: pd.DataFrame, guidance: FloatArray, protected: pd.DataFrame) -> tuple[Cells, ClassStatistics]:
    """The cells of a table, and the counts of its protected column per cell, as `AnonymizerTree.fit` makes them."""
    learned = [encoding.learn_domain(name, people[name]) for name in people.columns]
    codes = np.stack([code for _, code in learned], axis=1)
    cells, cell = encoding.count_cells(tuple(domain for domain, _ in learned), codes, guidance[:, None])
    return cells, encoding.count_sensitive(cells, cell, protected)


def guided_adult() -> tuple[Cells, ClassStatistics]:
    spec = ReleaseSpec.load(ADULT)
    adult = pd.read_parquet(spec.source_path).replace("?", None)
    people = adult[spec.quasi_identifiers]
    typed = people.astype({name: "category" for name in people if people[name].dtype == object})
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=60, random_state=0)
    guidance = cross_val_predict(model, typed, adult[spec.target], cv=3, method="predict_proba")[:, 1]
    return cells_of(people, guidance, adult[[spec.target]])


def mixed() -> tuple[Cells, ClassStatistics]:
    """600 people of three columns; older people are more often ill, and the guidance shows by how much."""
    random = np.random.default_rng(1)
    age = random.integers(18, 80, 600)
    towns = random.choice(["Aberdeen", "Bergen", "Cork", "Delft"], 600)
    people = pd.DataFrame({"age": age, "city": towns, "sex": random.choice(["f", "m"], 600)})
    ill = pd.DataFrame({"ill": np.where(age + random.normal(0, 15, 600) > 50, "yes", "no")})
    return cells_of(people, 1 / (1 + np.exp((50 - age) / 8.0)), ill)


def losses_of(demand: PrivacyModel, k: int, cells: Cells, protected: ClassStatistics, keys: list[Key]) -> list[float]:
    """Information lost under each key."""
    return [lost(AnonymizerTree(k=k, demands=[demand], key=key).fit_cells(cells, protected)) for key in keys]


def lost(tree: AnonymizerTree) -> float:
    return float(np.mean(list(tree.information_loss_.values())))


def print_chances(cells: Cells, protected: ClassStatistics, keys: list[Key]) -> None:
    """Print the protection by the constants of chance, and their cost."""
    print("| Adult | Information lost | Learned for certain | Undecided |\n|---|---|---|---|")
    own = {name: getattr(enforce, name) for name in SETTINGS["no chance"]}
    for setting, changed in SETTINGS.items():
        for name, value in (own | changed).items():
            setattr(enforce, name, value)
        found = []
        for key in keys:
            repair = AnonymizerTree(k=10, demands=[TWO_INCOMES], key=key).repair_of(cells, protected)
            found += regrouping.regrouped(repair, repair.repaired(key), key)
        certain, undecided = (np.mean([getattr(one, name) for one in found]) for name in ("certain", "undecided"))
        losses = losses_of(TWO_INCOMES, 10, cells, protected, keys)
        print(f"| {setting} | {np.mean(losses):.3f} | {certain:.1%} | {undecided:.1%} |", flush=True)
    for name, value in own.items():
        setattr(enforce, name, value)


def print_mixtures(adult: tuple[Cells, ClassStatistics], keys: list[Key]) -> None:
    """Print the losses under demands that only mixtures of unlike people meet, with near classes alone and as usual."""
    print("\n| Information lost | Near classes alone | As it is |\n|---|---|---|")
    tables = [("Adult", 10, adult, ADULTS_MIXTURES), ("600 people", 5, mixed(), MIXTURES)]
    own = ladder.DEAR
    for table, k, (cells, protected), demands in tables:
        for name, demand in demands.items():
            figures = []
            for ladder.DEAR in (math.inf, own):
                figures.append(f"{np.mean(losses_of(demand, k, cells, protected, keys)):.3f}")
            print(f"| {table}, {name} | " + " | ".join(figures) + " |", flush=True)


def print_spread(cells: Cells, protected: ClassStatistics, keys: list[Key]) -> None:
    """Print how much the information lost varies with the key."""
    print(f"\n| Adult, {len(keys)} keys | Least lost | Mean | Nine tenths below | Most lost |\n|---|---|---|---|---|")
    for name, enforce.LARGEST in SIZES.items():
        losses = losses_of(TWO_INCOMES, 10, cells, protected, keys)
        figures = (min(losses), np.mean(losses), np.quantile(losses, 0.9), max(losses))
        print(f"| {name} | " + " | ".join(f"{figure:.3f}" for figure in figures) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=3)
    parser.add_argument("--losses", type=int, default=40)
    given = parser.parse_args()
    keys = [Key(bytes([number + 1] * 32)) for number in range(max(given.keys, given.losses))]
    regrouping.PEOPLE = PEOPLE
    adult = guided_adult()
    print_chances(*adult, keys[: given.keys])
    print_mixtures(adult, keys[: given.keys])
    print_spread(*adult, keys[: given.losses])


if __name__ == "__main__":
    main()
