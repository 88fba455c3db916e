"""How often a release's class table assigns a person the class of the private tree, and the effect on a model.

Run: python -m benchmarks.release_space
The table is Adult with ten quasi-identifiers; seven tenths are released, and the others are looked up.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict, train_test_split

from anon_pipeline import AnonymizerTree, ReleaseSpace, ReleaseSpec
from anon_pipeline.privacy.l_diversity import LDiversity

SPEC = ReleaseSpec.load(Path(__file__).parents[1] / "data/adult")
TARGET, POSITIVE = "income", ">50K"


def main() -> None:
    people = pd.read_parquet(SPEC.source_path).replace({"?": None})
    train, test = train_test_split(people, test_size=0.3, random_state=0)
    names = SPEC.quasi_identifiers
    types = {
        name: pd.CategoricalDtype(sorted(people[name].dropna().unique()))
        for name in SPEC.features
        if people[name].dtype == object
    }

    def features(frame: pd.DataFrame) -> pd.DataFrame:
        return frame[SPEC.features].astype(types)

    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    guidance = cross_val_predict(model, features(train), train[TARGET], cv=5, method="predict_proba")[:, 1]
    print("| k, demand | People in the release | Other people | AUC: raw rows | by `ReleaseSpace` | by the tree |")
    print("|---|---|---|---|---|---|")
    diverse = LDiversity(column=TARGET, l=2)
    for label, k, demands in (("10", 10, []), ("10, two incomes per class", 10, [diverse]), ("100", 100, [])):
        tree = AnonymizerTree(k=k, demands=demands).fit(train[names], guidance, train[[TARGET]])
        space = ReleaseSpace(tree.classes_)
        released = train.assign(**tree.transform(train[names]))
        model.fit(features(released), released[TARGET])
        agree = [f"{(space.apply(part[names]) == tree.apply(part[names])).mean():.1%}" for part in (train, test)]
        asked = [test, *(test.assign(**one.transform(test[names])) for one in (space, tree))]
        aucs = [roc_auc_score(test[TARGET] == POSITIVE, model.predict_proba(features(one))[:, 1]) for one in asked]
        print(f"| {label} | {' | '.join(agree)} | {' | '.join(f'{auc:.4f}' for auc in aucs)} |", flush=True)


if __name__ == "__main__":
    main()
