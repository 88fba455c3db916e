"""The signed ledger: what the public key alone finds, keys that cannot be used, a kill between line and signature."""

import contextlib
import multiprocessing
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from filelock import Timeout
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anon_pipeline import home as home_module
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home
from anon_pipeline.release import ledger, signing, unfinished
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.release.test_ledger import lines, publish, write


def pem(key: object) -> str:
    return key.private_bytes(  # type: ignore[attr-defined, no-any-return]
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


KEY = Ed25519PrivateKey.generate()


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(signing.FILE_VARIABLE, raising=False)
    monkeypatch.setenv(signing.KEY_VARIABLE, pem(KEY))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A signed home with three releases, as an auditor holds it: without its private zone."""
    home = Home(tmp_path / "home").prepare()
    for version in ("aaaa", "bbbb", "cccc"):
        publish(home, "people", version)
    shutil.rmtree(home.private)
    return home


def problems(home: Home) -> list[str]:
    return ledger.verify(home, KEY.public_key())


def test_every_line_is_signed_as_it_is_appended(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").prepare()
    for version in ("aaaa", "bbbb"):
        publish(home, "people", version)
        assert problems(home) == []
    assert ledger.signature_file(home).stat().st_size == 64
    assert ledger.signature_file(home).stat().st_mode & 0o777 == 0o644
    assert not (home.private / "ledger.seal").exists()


def test_a_signature_made_afresh_is_for_everybody_to_read(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").prepare()
    publish(home, "people", "aaaa")
    with home.lock("ledger"):
        assert ledger.sign(home) == 1
    assert ledger.signature_file(home).stat().st_mode & 0o777 == 0o644
    assert problems(home) == []


def test_a_new_key_is_its_owners_alone_whatever_the_umask_is(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        signing.make_key(tmp_path / "key.pem")
    finally:
        os.umask(before)
    assert (tmp_path / "key.pem").stat().st_mode & 0o777 == 0o600


def test_without_a_key_nothing_is_signed(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(signing.KEY_VARIABLE)
    before = ledger.signature_file(home).read_bytes()
    with home.lock("ledger"), pytest.raises(InputError, match=r"signing key: neither .* is set"):
        ledger.sign(home)
    assert ledger.signature_file(home).read_bytes() == before


def test_where_nothing_was_released_there_is_nothing_to_sign(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").prepare()
    with home.lock("ledger"), pytest.raises(InputError, match="nothing to sign yet"):
        ledger.sign(home)
    assert not ledger.signature_file(home).exists()


@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=times(150))
@given(data=st.data())
def test_any_changed_byte_of_ledger_manifest_file_or_signature_is_found(home: Home, data: st.DataObject) -> None:
    file = data.draw(st.sampled_from(sorted(path for path in home.releases.rglob("*") if path.is_file())))
    content = file.read_bytes()
    place = data.draw(st.integers(0, len(content) - 1))
    altered = bytearray(content)
    altered[place] ^= data.draw(st.integers(1, 255))
    file.write_bytes(altered)
    try:
        assert problems(home)
    finally:
        file.write_bytes(content)
    assert problems(home) == []


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_removed_tail_is_found_with_the_public_key_alone(home: Home, kept: int) -> None:
    """The chain alone holds; without the signature nothing would be found."""
    for version in ("aaaa", "bbbb", "cccc")[kept:]:
        shutil.rmtree(home.releases / "people" / version)
    write(home, lines(home)[:kept])
    if kept:
        assert ledger.verify(home) == []
    assert "the ledger is not what was signed with this key" in problems(home)


@pytest.mark.parametrize("gone", ["ledger.jsonl", "ledger.jsonl.sig"])
def test_a_removed_ledger_or_signature_is_found(home: Home, gone: str) -> None:
    (home.releases / gone).unlink()
    assert "the ledger or its signature is gone" in problems(home)


def test_another_key_does_not_fit(home: Home) -> None:
    assert ledger.verify(home, Ed25519PrivateKey.generate().public_key()) == [
        "the ledger is not what was signed with this key"
    ]


def test_openssl_can_check_it(home: Home, tmp_path: Path) -> None:
    (tmp_path / "public.pem").write_text(signing.public_pem(KEY))
    command = [
        "openssl", "pkeyutl", "-verify", "-pubin", "-inkey", tmp_path / "public.pem", "-rawin",
        "-in", home.ledger, "-sigfile", ledger.signature_file(home),
    ]  # fmt: skip
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    home.ledger.write_bytes(home.ledger.read_bytes() + b"\n")
    assert subprocess.run(command, check=False, capture_output=True).returncode != 0


def test_a_home_without_a_key_is_not_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(signing.KEY_VARIABLE)
    home = Home(tmp_path / "home").prepare()
    publish(home, "people", "aaaa")
    assert not ledger.signature_file(home).exists()
    assert ledger.verify(home) == []


def test_a_signed_ledger_is_not_continued_without_its_key(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.prepare()
    monkeypatch.delenv(signing.KEY_VARIABLE)
    before = home.ledger.read_bytes()
    with pytest.raises(InputError, match="is signed; set ANON_PIPELINE_SIGNING_KEY"):
        ledger.append(home, "publish", "people", "dddd", "f" * 64)
    assert home.ledger.read_bytes() == before


def test_an_altered_ledger_is_not_signed_again(home: Home) -> None:
    """Else the next release would put the key's name to what somebody else has written."""
    home.prepare()
    write(home, [lines(home)[0].replace("aaaa", "eeee"), *lines(home)[1:]])
    with pytest.raises(Refused, match="not what was signed with this key"):
        ledger.append(home, "publish", "people", "dddd", "f" * 64)
    with pytest.raises(Refused, match="ledger line 2 does not continue line 1"):
        ledger.sign(home)


def test_a_ledger_can_be_signed_later_and_with_a_new_key(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.prepare()
    new = Ed25519PrivateKey.generate()
    monkeypatch.setenv(signing.KEY_VARIABLE, pem(new))
    with pytest.raises(Refused, match="not what was signed with this key"):
        ledger.append(home, "publish", "people", "dddd", "f" * 64)
    assert ledger.sign(home) == 3
    assert ledger.verify(home, new.public_key()) == []
    publish(home, "people", "dddd")
    assert ledger.verify(home, new.public_key()) == []


@pytest.mark.parametrize("name", ["ledger.jsonl", "ledger.jsonl.sig", "ledger.head"])
def test_a_kill_between_ledger_signature_and_head_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    home = Home(tmp_path / "home").prepare()
    publish(home, "people", "aaaa")
    rename = os.replace

    def killed(source: str, final: Path) -> None:
        if Path(final).name == name:
            raise SystemExit
        rename(source, final)

    with monkeypatch.context() as patch:
        patch.setattr(home_module.os, "replace", killed)
        with pytest.raises(SystemExit):
            publish(home, "people", "bbbb")
    written = 1 if name == "ledger.jsonl" else 2
    assert len(ledger.read(home)) == written
    if written == 2:
        assert problems(home) == []  # what is under way is no alarm
    with home.lock("ledger"):
        unfinished.finish(home)
    assert not (home.private / "ledger.seal").exists()
    shutil.rmtree(home.releases / "people" / "bbbb")
    publish(home, "people", "bbbb" if written == 1 else "cccc")
    assert len(ledger.read(home)) == written + 1
    assert [one for one in problems(home) if "bbbb" not in one] == []


def test_what_was_under_way_does_not_cover_what_was_altered_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home").prepare()
    publish(home, "people", "aaaa")

    def killed(_: Home) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "_head", killed)
        with pytest.raises(SystemExit):
            publish(home, "people", "bbbb")
    write(home, [lines(home)[0].replace("aaaa", "eeee"), *lines(home)[1:]])
    with home.lock("ledger"):
        unfinished.finish(home)
    assert "the ledger is not what was signed with this key" in problems(home)


def _many(root: Path, dataset: str, turns: Any) -> None:
    for number in range(8):
        turns.acquire()  # with every look a line, so that there are looks between any two
        publish(Home(root), dataset, f"{number:04}")


@pytest.mark.long
def test_many_writers_keep_one_signed_chain_that_holds_whenever_it_is_looked_at(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").prepare()
    publish(home, "first", "aaaa")
    context = multiprocessing.get_context("fork")
    turns = context.Semaphore(0)
    writers = [context.Process(target=_many, args=(home.root, name, turns)) for name in ("people", "others")]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        turns.release()
        with ledger.undisturbed(home):
            # A folder may be there before its line; the ledger itself holds at any time.
            assert [one for one in problems(home) if "the ledger does not know it" not in one] == []
        time.sleep(0.06)  # whoever waits for the lock asks for it every .05 s, and must get a turn
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert len(ledger.read(home)) == 17
    assert problems(home) == []


def test_no_writer_moves_the_ledger_while_it_is_judged(home: Home, tmp_path: Path) -> None:
    with ledger.undisturbed(home):  # an auditor's copy has no private zone, and gets none by being judged
        assert not home.private.exists()
    home.prepare()
    with ledger.undisturbed(home), pytest.raises(Timeout), home.lock("ledger", timeout=0):
        pass


def owner_only(folder: Path) -> Path:
    signing.make_key(folder / "key.pem")
    return folder / "key.pem"


def test_a_key_file_is_its_owners_alone(tmp_path: Path) -> None:
    file = owner_only(tmp_path)
    assert file.stat().st_mode & 0o777 == 0o600
    key = signing.signing_key({signing.FILE_VARIABLE: str(file)})
    assert key is not None
    (tmp_path / "public.pem").write_text(signing.public_pem(key))
    assert signing.read_public_key(tmp_path / "public.pem") == key.public_key()
    file.chmod(0o640)
    with pytest.raises(InputError, match="can be read by others"):
        signing.signing_key({signing.FILE_VARIABLE: str(file)})
    with pytest.raises(InputError, match="exists already; a key is not overwritten"):
        signing.make_key(file)


def test_half_a_key_is_not_left_where_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The empty file could not be overwritten by the next call, and the message named the home."""

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(InputError, match=r"key\.pem: cannot be written \(No space left on device\)"):
            signing.make_key(tmp_path / "key.pem")
    signing.make_key(tmp_path / "key.pem")


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        (lambda folder: {signing.KEY_VARIABLE: "no key"}, "is no Ed25519 private key"),
        (lambda folder: {signing.KEY_VARIABLE: pem(generate_private_key(SECP256R1()))}, "is no Ed25519 private key"),
        (lambda folder: {signing.KEY_VARIABLE: signing.public_pem(KEY)}, "is no Ed25519 private key"),
        (lambda folder: {signing.FILE_VARIABLE: str(folder / "none")}, "cannot be read"),
        (lambda folder: {signing.FILE_VARIABLE: str(folder)}, "cannot be read"),
        (
            lambda folder: {signing.KEY_VARIABLE: pem(KEY), signing.FILE_VARIABLE: str(owner_only(folder))},
            "are both set",
        ),
        (
            lambda folder: {
                signing.KEY_VARIABLE: KEY.private_bytes(
                    serialization.Encoding.PEM,
                    serialization.PrivateFormat.PKCS8,
                    serialization.BestAvailableEncryption(b"secret"),
                ).decode()
            },
            "is encrypted",
        ),
    ],
    ids=["no pem", "another kind", "public", "absent", "a folder", "both", "encrypted"],
)
def test_a_key_that_cannot_be_used_is_told_in_a_sentence(
    tmp_path: Path, environment: Callable[[Path], dict[str, str]], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence) as told:
        signing.signing_key(environment(tmp_path))
    assert "PRIVATE KEY-----" not in str(told.value)


def test_a_pipe_is_no_key_file(tmp_path: Path) -> None:
    pipe = tmp_path / "key.pem"
    os.mkfifo(pipe, 0o600)

    def give() -> None:
        with contextlib.suppress(BrokenPipeError), pipe.open("w") as other_end:
            other_end.write(pem(KEY))

    giver = threading.Thread(target=give, daemon=True)  # it waits for ever where nobody opens the pipe
    giver.start()
    with pytest.raises(InputError, match="is no file"):
        signing.signing_key({signing.FILE_VARIABLE: str(pipe)})
    giver.join()


def test_no_variable_is_no_key() -> None:
    assert signing.signing_key({}) is None
    assert signing.signing_key({signing.KEY_VARIABLE: "", signing.FILE_VARIABLE: ""}) is None


def test_a_public_key_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "public.pem").write_text(pem(KEY))
    with pytest.raises(InputError, match="is no Ed25519 public key"):
        signing.read_public_key(tmp_path / "public.pem")
    with pytest.raises(InputError, match="cannot be read"):
        signing.read_public_key(tmp_path / "none.pem")
