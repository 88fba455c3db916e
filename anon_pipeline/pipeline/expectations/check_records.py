"""What Great Expectations found in the last runs of each stage: suites with their results, in the private zone.

They hold verdicts and numbers. `data_docs` makes pages of them when somebody asks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from anon_pipeline.home import Home, write_file

FOLDER = "checks"
#: How many runs of a stage are kept; the pages of more take long to make, and nobody reads them.
RUNS = 20


def keep_records(home: Home, dataset: str, stage: str, records: Sequence[dict[str, Any]]) -> None:
    """Keep what one run of a stage came to, and forget what is older than the last `RUNS` runs."""
    folder = home.private_folder(FOLDER, dataset, stage)
    name = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    write_file(folder / f"{name}.json", json.dumps(list(records)))
    for former in sorted(folder.glob("*.json"))[:-RUNS]:
        former.unlink()


def read_records(home: Home, dataset: str | None = None) -> Iterator[tuple[str, str, str, list[dict[str, Any]]]]:
    """Dataset, stage, name of the run and records, of all datasets or one; oldest first."""
    of_dataset = dataset or "[!.]*"
    for file in sorted((home.private / FOLDER).glob(f"{of_dataset}/*/*.json")):
        yield file.parent.parent.name, file.parent.name, file.stem, json.loads(file.read_text(encoding="utf-8"))
