"""Nothing published confirms a guess at the source.

The attacker knows the code, the spec, all quasi-identifiers and identifiers, and has all that is published. 24 people
in classes of 8 with few sensitive values leave so few possible tables that each can be tried: computed as the code
computes it, and held against every hash and every figure that was published of the source.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from anon_pipeline.anonymize.policy import anonymize_part
from anon_pipeline.association import Variable, association
from anon_pipeline.engine.content import ContentHash, row_hashes
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.home import Home
from anon_pipeline.keys import Key
from anon_pipeline.learning.models import task_of
from anon_pipeline.learning.problem import Problem
from anon_pipeline.learning.utility import CrossValidation, measure_utility
from anon_pipeline.release.openlineage import NAMESPACE
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import Place, command, write_dataset
from anon_pipeline_tests.pipeline.in_steps import released_in_steps

N, K, KEY = 24, 8, "GUESSES_KEY"
SPEC: dict[str, Any] = {
    "dataset": "people",
    "source": {"path": "people.csv"},
    "target": "ill",
    "columns": {
        "name": {"role": "identifier"},
        "city": {"role": "quasi_identifier", "type": "categorical"},
        "pay": {"role": "quasi_identifier", "type": "numeric"},
        "ill": {"role": "sensitive", "type": "categorical"},
    },
    "privacy": {"k_anonymity": {"k": K}, "l_diversity": {"column": "ill", "l": 2}},
    "guide": {"model": "linear", "folds": 2},
    "utility": {"folds": 2, "models": []},
    "audit": {"enabled": False},
    "draws": {"environment": KEY},
}


def release(root: Path, frame: pd.DataFrame) -> Place:
    """Under a private key that is always the same: what the attacker's luck would be with it is not left open."""
    place = Place(Home(root / "home"), write_dataset(root / "people", frame, SPEC))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(KEY, "5c" * 32)
        released_in_steps(place)
    return place


def people() -> pd.DataFrame:
    """Three towns of eight, each with a pay of its own, of which the last is where most are ill."""
    random = np.random.default_rng(3)
    city = np.repeat(["Aberdeen", "Bergen", "Cork"], K)
    pay = np.repeat([20_000, 50_000, 80_000], K) + random.integers(0, 10_000, N)
    ill = [random.permutation(["yes"] * some + ["no"] * (K - some)) for some in (2, 1, 6)]
    return pd.DataFrame({"name": [f"n{i}" for i in range(N)], "city": city, "pay": pay, "ill": np.concatenate(ill)})


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return release(tmp_path_factory.mktemp("guesses"), people())


@pytest.fixture(scope="module")
def guesses(released: Place) -> list[tuple[str, ...]]:
    """Every assignment of sensitive values to the people that the published table allows, the true one among them."""
    table, known = pd.read_parquet(released.release / "data.parquet"), people()
    classes = pd.read_parquet(released.release / "classes.parquet")
    options = []
    for one in classes.itertuples():
        inside = [
            place
            for place, person in enumerate(known.itertuples())
            if one.pay_low <= person.pay <= one.pay_high and person.city in one.city_values
        ]
        assert len(inside) == one.class_size  # quasi-identifiers tell everybody's class
        ill = int(((table.city == one.city) & (table.pay == one.pay) & (table.ill == "yes")).sum())
        chosen = itertools.combinations(inside, ill)
        options.append([dict.fromkeys(inside, "no") | dict.fromkeys(some, "yes") for some in chosen])
    found = [
        tuple(value for _, value in sorted(itertools.chain.from_iterable(part.items() for part in parts)))
        for parts in itertools.product(*options)
    ]
    assert tuple(people()["ill"]) in found and len(found) > 5_000
    return found


def source_hashes(guesses: list[tuple[str, ...]]) -> Iterator[str]:
    """The content hash of the source under each guess: hashes of rows are added, so each is counted once."""
    known = people()
    lanes = {
        value: row_hashes(
            [pa.array(column) for column in (known.name, known.city, known.pay)] + [pa.array([value] * N)],
            ["name", "city", "pay", "ill"],
        )
        for value in ("yes", "no")
    }
    kinds = [("name", "text"), ("city", "text"), ("pay", "whole"), ("ill", "text")]
    for guess in guesses:
        content = ContentHash()
        chosen = np.where(np.array(guess) == "yes", lanes["yes"], lanes["no"])
        content.add(chosen, np.ones(N, dtype=np.int64))
        yield content.hexadecimal(kinds)


def published_hashes(releases: Path) -> set[str]:
    """Whatever looks like a hash in any byte or any name."""
    texts = [file.read_bytes().decode("latin-1") for file in releases.rglob("*") if file.is_file()]
    texts += [str(file.relative_to(releases)) for file in releases.rglob("*")]
    return {one for text in texts for one in re.findall(r"[0-9a-f]{12,}", text)}


def derived(source: str, manifest: dict[str, Any]) -> Iterator[str]:
    """All that could stand in a release for a guessed source hash, and that anybody can compute."""
    yield source
    content = {"source": source, "spec": manifest["spec_hash"], "content": manifest["content_hashes"]}
    yield hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
    yield hashlib.sha256(source.encode()).hexdigest()
    opens = {"content_hash": source, "dataset": "people", "query": None, "rows": N, "version": manifest["version"]}
    message = json.dumps(opens, sort_keys=True).encode()
    yield hashlib.sha256(message).hexdigest()
    for key in (b"", bytes(32), manifest["version"].encode(), NAMESPACE.encode(), (0).to_bytes(4, "big")):
        yield hmac.digest(key, message, "sha256").hex()


def manifest_of(place: Place) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((place.release / "manifest.json").read_text())
    return content


def test_the_guessed_hash_is_the_real_one(released: Place, tmp_path: Path) -> None:
    """Else the attack below would find nothing for the wrong reason."""
    stored = DuckDBEngine(tmp_path).store_source(released.spec, tmp_path / "stored.parquet")
    assert next(source_hashes([tuple(people()["ill"])])) == stored.content_hash


def test_no_published_hash_confirms_a_guess(released: Place, guesses: list[tuple[str, ...]]) -> None:
    published, manifest = published_hashes(released.home.releases), manifest_of(released)
    confirmed = [
        guess
        for guess, source in zip(guesses, source_hashes(guesses), strict=True)
        if any(one in published for one in derived(source, manifest))
    ]
    assert confirmed == []


def test_no_published_figure_rules_a_guess_out(released: Place, guesses: list[tuple[str, ...]]) -> None:
    """How strongly columns hang together in the source, counted for every guess."""
    published = {
        name: pair["before"]
        for pair in manifest_of(released)["measured"]["associations"]["pairs"]
        for name in pair["columns"]
        if "ill" in pair["columns"] and name != "ill"
    }
    known, alone = people(), np.ones(N, dtype=np.int64)
    variables = {
        "pay": Variable(known["pay"].to_numpy(np.float64), True),
        "city": Variable(pd.factorize(known["city"])[0].astype(np.int64), False),
    }
    assert set(published) == set(variables)
    left = []
    some = np.random.default_rng(0).choice(len(guesses), 4_000, replace=False)
    for guess in [tuple(known["ill"]), *(guesses[place] for place in some)]:
        ill = Variable((np.array(guess) == "yes").astype(np.int64), False)
        figures = {name: association(one, ill, alone) for name, one in variables.items()}
        if all(before is None or written_as(before, figures[name]) for name, before in published.items()):
            left.append(guess)
    assert left[0] == tuple(known["ill"])  # the attack is right, or it says nothing
    certain = [person for person, values in enumerate(zip(*left, strict=True)) if len(set(values)) == 1]
    assert certain == []


def written_as(published: float, figure: float | None) -> bool:
    """Whether a figure reads as the published one does, in as many digits."""
    digits = len(repr(abs(published)).replace(".", "").lstrip("0")) or 1
    return figure is not None and abs(figure - published) <= max(0.6 * 10.0 ** -(digits - 1), 1e-9) * abs(published)


def test_scores_cannot_be_measured_again_for_each_guess(released: Place) -> None:
    """An attacker who knows all but which people of a town are ill repeats the cross-validation for each guess."""
    published = flat(manifest_of(released)["utility"]["metrics"])
    guesses = list(swapped(people()))
    agree = [agrees(published, flat(measured_again(released.spec, guess))) for guess in guesses]
    assert not agree[0] or all(agree)  # the truth is the first


def swapped(truth: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The truth, and every table in which two people of the first town have changed places."""
    yield truth
    first = truth.index[:K]
    for one, other in itertools.product(first[truth.ill[:K] == "yes"], first[truth.ill[:K] == "no"]):
        ill = truth["ill"].copy()
        ill[[one, other]] = ["no", "yes"]
        yield truth.assign(ill=ill)


def measured_again(spec: ReleaseSpec, guess: pd.DataFrame) -> dict[str, Any]:
    """What the asset `utility` measures, with the seed of the spec and a key of the attacker's own."""
    from anon_pipeline.spec import ColumnType

    types = {"city": ColumnType.CATEGORICAL, "pay": ColumnType.NUMERIC}
    names = sorted(spec.released)
    hashes = row_hashes([pa.array(guess[name]) for name in names], names)[0] >> np.uint64(1)
    frame = guess.iloc[np.argsort(hashes, kind="stable")].reset_index(drop=True)
    frame = frame[[*spec.features, "ill"]].assign(pay=frame["pay"].astype(np.float64))
    found = measure_utility(
        Problem.within(frame, "ill", task_of(ColumnType.CATEGORICAL), types, spec.seed),
        CrossValidation(spec.guide, spec.utility.folds),
        lambda part, guidance: anonymize_part(spec, Key(bytes(32)), part, guidance),
    )
    metrics: dict[str, Any] = found.as_dict()["metrics"]
    return metrics


def flat(content: Any) -> list[float | None]:
    if isinstance(content, dict):
        return [one for name in sorted(content) for one in flat(content[name])]
    if isinstance(content, list | tuple):
        return [one for value in content for one in flat(value)]
    return [content]


def agrees(published: list[float | None], measured: list[float | None]) -> bool:
    """Whether two lists of scores are the same but for rounding."""
    pairs = list(zip(published, measured, strict=True))
    known = [(one, other) for one, other in pairs if one is not None and other is not None]
    return all((one is None) == (other is None) for one, other in pairs) and np.allclose(
        *zip(*known, strict=True), atol=1e-3
    )


def test_who_of_a_class_has_which_value_shows_in_scores_alone(released: Place, tmp_path: Path) -> None:
    """Two people of one class change places: the tables stay, and all that may differ is measured under the key."""
    changed = next(itertools.islice(swapped(people()), 1, None))
    other = release(tmp_path, changed)
    assert other.release.name == released.release.name
    for name in ("data.parquet", "classes.parquet"):
        assert (other.release / name).read_bytes() == (released.release / name).read_bytes()
    one, then = manifest_of(released), manifest_of(other)
    differ = {name for name in one if one[name] != then[name]}
    assert differ <= {"created", "runs", "files", "source", "utility"}
    assert {name for name in one["source"] if one["source"][name] != then["source"][name]} == {"commitment"}


def test_the_opening_confirms_the_source_for_who_is_given_it(released: Place, tmp_path: Path) -> None:
    """The whole way of an auditor, through the commands."""
    home, version = released.home.root, released.release.name
    assert command("releases", "open", version, "--out", tmp_path / "o.json", home=home).exit_code == 0
    asked = ("releases", "check-opening", tmp_path / "o.json", "--spec", released.dataset, "--json")
    assert json.loads(command(*asked, home=home).stdout) == {"holds": True, "problems": []}
    people().sample(frac=1, random_state=1).to_csv(tmp_path / "same.csv", index=False)
    assert command(*asked, "--source", tmp_path / "same.csv", home=home).exit_code == 0
    next(itertools.islice(swapped(people()), 1, None)).to_csv(tmp_path / "other.csv", index=False)
    ended = command(*asked, "--source", tmp_path / "other.csv", home=home)
    assert ended.exit_code == 3
    assert json.loads(ended.stdout)["problems"] == ["the source is not the one that the opening is about"]
    elsewhere = command(
        *asked, "--manifest", released.release / "manifest.json", home=tmp_path / "elsewhere"
    )  # an auditor has the release alone
    assert elsewhere.exit_code == 0, elsewhere.said
