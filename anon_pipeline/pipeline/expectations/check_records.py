"""The results of Great Expectations in the last runs of each stage, with their suites, in the private zone.

They hold verdicts and numbers. `data_docs` makes pages of them on request.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from anon_pipeline.home import Home, write_file

FOLDER = "checks"
#: Kept runs of a stage; pages of more runs would take long to make, and nobody would read them.
RUNS = 20


def keep_records(home: Home, dataset: str, stage: str, records: Sequence[dict[str, Any]]) -> None:
    """Keep the results of one run of a stage, and delete those that are older than the last `RUNS` runs."""
    folder = home.private_folder(FOLDER, dataset, stage)
    name = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    write_file(folder / f"{name}.json", json.dumps(list(records)))
    for former in sorted(folder.glob("*.json"))[:-RUNS]:
        former.unlink()


def read_records(home: Home, dataset: str | None = None) -> Iterator[tuple[str, str, str, list[dict[str, Any]]]]:
    """Dataset, stage, name of the run and records, for all datasets or one; oldest first."""
    of_dataset = dataset or "[!.]*"
    for file in sorted((home.private / FOLDER).glob(f"{of_dataset}/*/*.json")):
        yield file.parent.parent.name, file.parent.name, file.stem, json.loads(file.read_text(encoding="utf-8"))
