"""Pseudonyms, reversible tokens, fakes and hashes, and the keys they need."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import uuid
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.keys import DEFAULT_KEY, Key, KeySource, Secrets
from anon_pipeline.masking import encryption
from anon_pipeline.masking.encryption import Encrypt, _padded, _unpadded, reveal
from anon_pipeline.masking.execution import Resources
from anon_pipeline.masking.texts import as_texts
from anon_pipeline_tests.masking.tables import CATEGORICAL, DATE, KEY, NUMERIC, SECRETS, masked, step
from anon_pipeline_tests.skips import require_package

OTHER = Secrets({"ANON_PIPELINE_KEY": "0b" * 32})


def test_a_pseudonym_is_the_hmac_of_the_text_under_a_key_of_the_column() -> None:
    shown, (report,) = masked(["Ulm", None], CATEGORICAL, step("pseudonymize"))
    key = Key(bytes.fromhex("0a" * 32))
    digest = hmac.digest(key.derived("pseudonym", "column v"), b"Ulm", "sha256")[:16]
    assert shown.to_pylist() == [base64.b32encode(digest).decode().rstrip("=").lower(), None]
    in_hex, _ = masked(["Ulm"], CATEGORICAL, step("pseudonymize", encoding="hex", bits=96))
    assert in_hex.to_pylist() == [digest[:12].hex()]
    assert report.facts["key_id"] == hashlib.sha256(key.material).hexdigest()[:8]


@pytest.mark.long
def test_a_million_values_get_a_million_pseudonyms_and_others_under_another_key() -> None:
    numbers = pa.array(np.arange(4_900_000_000, 4_901_000_000))
    first, _ = masked(numbers, NUMERIC, step("pseudonymize", bits=96))
    second, _ = masked(numbers.slice(0, 100_000), NUMERIC, step("pseudonymize", bits=96), secrets=OTHER)
    assert len(first.unique()) == 1_000_000
    assert len(pa.concat_arrays([first, second]).unique()) == 1_100_000


def test_columns_are_apart_unless_they_share_a_domain() -> None:
    table = {"other": pa.array([1])}
    own = step("pseudonymize")
    shared = step("pseudonymize", domain="patients")
    first, _ = masked(["a"], CATEGORICAL, own, others=table)
    from anon_pipeline.masking.execution import apply_steps

    two = pa.table({"v": ["a"], "w": ["a"]})
    kinds = {"v": CATEGORICAL, "w": CATEGORICAL}
    apart, _ = apply_steps(two, kinds, {"v": [own], "w": [own]}, resources=Resources(key=KEY, secrets=SECRETS))
    joined, _ = apply_steps(two, kinds, {"v": [shared], "w": [shared]}, resources=Resources(key=KEY, secrets=SECRETS))
    assert apart.column("v").to_pylist() == first.to_pylist() != apart.column("w").to_pylist()
    assert joined.column("v").to_pylist() == joined.column("w").to_pylist() != first.to_pylist()
    named_alike, _ = apply_steps(
        two, kinds, {"v": [step("pseudonymize", domain="w")], "w": [own]}, resources=Resources(key=KEY, secrets=SECRETS)
    )
    assert named_alike.column("v").to_pylist() != named_alike.column("w").to_pylist()


def test_a_number_has_one_pseudonym_however_it_is_stored() -> None:
    tokens = [
        masked(column, NUMERIC, step("pseudonymize"))[0].to_pylist()[0]
        for column in (pa.array([42]), pa.array([42.0]), pa.array([42], pa.int8()))
    ]
    assert len(set(tokens)) == 1
    assert as_texts(pa.array([0.1, 1e300, 2.0**53, -0.5])).to_pylist() == ["0.1", "1e+300", "9007199254740992", "-0.5"]
    assert as_texts(pa.array([date(2024, 2, 29)])).to_pylist() == ["2024-02-29"]


def test_what_was_encrypted_is_had_back_with_the_key_and_only_so() -> None:
    values = ["Ulm", "", "日本語", "x" * 1000, "a\0", "\x80", None, "Ulm"]
    shown, (report,) = masked(values, CATEGORICAL, step("encrypt"))
    tokens = shown.to_pylist()
    assert tokens[0] == tokens[7] and len(set(tokens)) == 7
    assert len(tokens[0]) == len(tokens[1]) == len(tokens[2]), "short lengths look alike"
    key = SECRETS.key(DEFAULT_KEY)
    assert reveal(tokens, Encrypt(), "v", key) == values
    assert report.facts["key_id"] == key.id
    for technique, column, wrong in (
        (Encrypt(), "w", key),
        (Encrypt(domain="v"), "v", key),
        (Encrypt(), "v", OTHER.key(DEFAULT_KEY)),
    ):
        with pytest.raises(InputError, match="token 1 was not made by the key") as refused:
            reveal(tokens, technique, column, wrong)
        assert "Ulm" not in str(refused.value) and tokens[0] not in str(refused.value)
    for broken in (
        tokens[0][:-8],
        "a" + tokens[0][1:] if tokens[0][0] != "a" else "b" + tokens[0][1:],
        "no token!",
        "",
    ):
        with pytest.raises(InputError, match="token 2 was not"):
            reveal([None, broken], Encrypt(), "v", key)
    dates, _ = masked([date(2024, 2, 29)], DATE, step("encrypt"))
    assert reveal(dates.to_pylist(), Encrypt(), "v", key) == ["2024-02-29"]


def test_a_text_is_padded_to_the_next_multiple_of_64_bytes_after_it() -> None:
    for length in range(200):
        padded = _padded(b"x" * length)
        assert len(padded) == 64 * (length // 64 + 1) and _unpadded(padded) == b"x" * length


def test_a_token_of_another_padding_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases that stand have tokens whose texts were padded to 16 bytes."""
    key = SECRETS.key(DEFAULT_KEY)
    monkeypatch.setattr(encryption, "PADDED", 16)
    former, _ = masked(["Ulm", "x" * 20], CATEGORICAL, step("encrypt"))
    monkeypatch.undo()
    assert len(former[0].as_py()) < len(former[1].as_py())
    assert reveal(former.to_pylist(), Encrypt(), "v", key) == ["Ulm", "x" * 20]


def test_the_length_of_a_token_tells_nobody_of_a_class_from_the_others() -> None:
    """Who knows the addresses of ten people alike was right about whose token is whose for .17, .23 of long ones."""
    random = np.random.default_rng(4)
    addresses = ["x" * length for length in random.integers(12, 60, 1000)]
    tokens = masked(addresses, CATEGORICAL, step("encrypt"))[0].to_pylist()
    of_classes = np.array([len(token) for token in tokens]).reshape(100, 10)
    right = np.mean([len(set(lengths)) for lengths in of_classes.tolist()]) / 10  # one of each length, by chance
    assert right == 1 / 10


@pytest.mark.long
def test_a_fake_is_what_faker_makes_of_the_hmac_of_the_value() -> None:
    faker = require_package("faker")
    shown, _ = masked(["Anna", "Bert", "Cleo"], CATEGORICAL, step("fake", kind="first_name", locale="de_DE"))
    maker, key = faker.Faker("de_DE"), SECRETS.key(DEFAULT_KEY).derived("fake", "column v")
    for value, fake in zip(["Anna", "Bert", "Cleo"], shown.to_pylist(), strict=True):
        maker.seed_instance(int.from_bytes(hmac.digest(key, value.encode(), "sha256"), "big"))
        assert fake == maker.first_name()


def test_fakes_are_one_per_person_and_the_same_in_every_table() -> None:
    faker = require_package("faker")
    first, (report,) = masked(["Anna", "Bert", "Anna", None], CATEGORICAL, step("fake", kind="name"))
    second, _ = masked(["Bert", "Cleo"], CATEGORICAL, step("fake", kind="name"))
    assert first[0] == first[2] and first[0] != first[1] and first[3].as_py() is None
    assert first[1] == second[0] and "Anna" not in first.to_pylist()
    assert report.facts["faker"] == faker.VERSION and report.facts["distinct_fakes"] == 2
    other, _ = masked(["Bert"], CATEGORICAL, step("fake", kind="name"), secrets=OTHER)
    assert other[0] != first[1]
    for kind in ("email", "phone_number", "street_address", "iban", "uuid4", "postcode"):
        made, _ = masked(["Bert"], CATEGORICAL, step("fake", kind=kind, locale="de_DE"))
        assert made[0].as_py()
    with pytest.raises(InputError, match=r"steps\.0\.locale: .* take en_US"):
        masked(["Bert"], CATEGORICAL, step("fake", kind="name", locale="xx_XX"))


def test_only_random_tokens_are_hashed_without_a_key() -> None:
    tokens = [str(uuid.UUID(int=number, version=4)) for number in (1, 2**100)] + ["0f" * 16, None]
    shown, _ = masked(tokens, CATEGORICAL, step("hash"))
    assert shown.to_pylist()[0] == hashlib.sha256(str(tokens[0]).encode()).hexdigest() and shown[3].as_py() is None
    for listable in ("+49 731 1234567", "Anna", "anna@example.org", "1234567890123", str(uuid.uuid1())):
        with pytest.raises(InputError, match=r"1 value is no random token, .* take pseudonymize") as refused:
            masked([tokens[0], listable], CATEGORICAL, step("hash"))
        assert listable not in str(refused.value)
    with pytest.raises(InputError, match="hash needs texts"):
        masked([1], NUMERIC, step("hash"))


def write(path: Path, text: str, mode: int) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_key_is_read_from_a_file_that_nobody_else_may_read(tmp_path: Path) -> None:
    source = KeySource(file="key")
    with pytest.raises(InputError, match="cannot be read"):
        Secrets({}, tmp_path).key(source)
    write(tmp_path / "key", "0a" * 32 + "\n", 0o600)
    assert Secrets({}, tmp_path).key(source) == SECRETS.key(DEFAULT_KEY)
    for mode in (0o640, 0o604, 0o644, 0o620):
        (tmp_path / "key").chmod(mode)
        with pytest.raises(InputError, match="can be read by others; run `chmod 600`"):
            Secrets({}, tmp_path).key(source)
    (tmp_path / "folder").mkdir(mode=0o700)
    with pytest.raises(InputError, match="key: "):
        Secrets({}, tmp_path).key(KeySource(file="folder"))


@pytest.mark.parametrize("text", ["", "secret", "0a" * 31, "0a" * 31 + "0", "zz" * 32, "0a " * 32])
def test_a_short_key_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(InputError, match="openssl rand -hex 32") as refused:
        Secrets({"ANON_PIPELINE_KEY": text}).key(DEFAULT_KEY)
    assert not text or text not in str(refused.value)


def test_a_key_never_shows() -> None:
    key = SECRETS.key(DEFAULT_KEY)
    assert "0a" * 4 not in repr(key) and "\\n" not in repr(key) and repr(key) == "Key()"
    assert len(key.id) == 8 and key.id not in key.material.hex()
    assert key.derived("pseudonym", "a") != key.derived("encryption", "a") != key.derived("encryption", "b")
    assert len(key.derived("encryption", "a", 64)) == 64


def test_a_missing_key_is_found_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANON_PIPELINE_KEY", raising=False)
    assert "ANON_PIPELINE_KEY" not in os.environ
    with pytest.raises(
        InputError, match=r"columns\.v\.steps\.0\.key: the environment variable ANON_PIPELINE_KEY is not set"
    ):
        masked(["a"], CATEGORICAL, step("pseudonymize"), secrets=Secrets())
    for wrong in ({}, {"environment": "A", "file": "b"}):
        with pytest.raises(ValueError, match="names one place"):
            KeySource.model_validate(wrong)


@pytest.mark.parametrize(
    ("package", "technique", "extra"), [("cryptography", "encrypt", "masking"), ("faker", "fake", "masking")]
)
def test_an_absent_package_is_named(package: str, technique: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    parameters = {"kind": "name"} if technique == "fake" else {}
    with pytest.raises(InputError, match=rf"pip install 'anon-pipeline\[{extra}\]'"):
        masked(["a"], CATEGORICAL, step(technique, **parameters))


@pytest.mark.parametrize("numbers", [["491511234567", "a" * 32], ["4915112345678" + "0" * 19]])
def test_numbers_filled_up_to_the_length_of_a_token_are_none(numbers: list[str]) -> None:
    """Whoever lists all phone numbers fills each up in the same way, and finds the token of everybody."""
    filled = [number.zfill(32) for number in numbers]
    with pytest.raises(InputError, match="no random token"):
        masked(filled, CATEGORICAL, step("hash"))
