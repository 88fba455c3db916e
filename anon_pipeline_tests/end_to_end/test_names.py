"""Columns and owners may have any name: what people read has it as it is."""

import json
import sqlite3
from contextlib import closing

from anon_pipeline_tests.end_to_end.harness import Place, people, policy, write_dataset

ODD = ["blood type", "Größe", "a-b", "1st", 'q"uote', "a.b", "🦆", "x" * 300]


def test_a_release_with_odd_names_is_checked_under_them(fresh: Place) -> None:
    frame, spec = people(), policy() | {"owner": "Jane Doe"}
    for name in ODD:
        frame[name] = frame["ill"]
        spec["columns"][name] = {"role": "sensitive", "type": "categorical"}
    spec["privacy"]["l_diversity"] = [{"column": name, "l": 2} for name in ODD]
    spec["audit"] |= {"models": False, "attribute_inference": {"blood type": 0.0, "Größe": 1.0}}
    write_dataset(fresh.dataset, frame, spec)
    ended = fresh.run("--json")
    said = json.loads(ended.stdout)
    assert ended.exit_code == 3, ended.said
    (failure,) = said["failures"]
    assert failure.startswith("attribute_inference_blood type: ")
    with closing(sqlite3.connect(fresh.home.private / "mlflow/mlflow.db")) as store:
        told = {value for key, value in store.execute("SELECT key, value FROM tags") if key.endswith(".name")}
    assert {f"attack_inference__{name}" for name in ODD if name != "1st"} <= told
