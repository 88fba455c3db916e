"""The dataset's private key: made once, kept for its owner alone, and numbers that only its holder can draw."""

import os
import re
import stat
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.keys import Key, kept_key, kept_place, private_key
from anon_pipeline.release import signing
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import policy


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a home").prepare()  # commands in messages quote the blank


def test_a_key_is_made_once_and_for_its_owner_alone(home: Home) -> None:
    key, made = kept_key("clinic", home)
    again, made_again = kept_key("clinic", home)
    assert (made, made_again) == (True, False)
    assert key == again
    assert len(key.material) == 32
    assert kept_key("other", home)[0] != key
    kept = home.private / "keys" / "clinic.key"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(("content", "mode"), [("short", 0o600), ("ab" * 32, 0o644)])
def test_a_kept_key_that_cannot_be_used_is_told_and_not_replaced(home: Home, content: str, mode: int) -> None:
    kept = home.private_folder("keys") / "clinic.key"
    kept.write_text(content)
    kept.chmod(mode)
    with pytest.raises(InputError, match=r"clinic\.key"):
        kept_key("clinic", home)
    assert kept.read_text() == content


def test_a_key_that_is_lost_after_a_release_is_not_made_anew_by_itself(home: Home) -> None:
    """Two releases of the same people under two keys reveal more than either; a person decides."""
    spec = ReleaseSpec.model_validate(policy())
    private_key(spec, home)
    (home.releases / spec.dataset).mkdir()
    assert private_key(spec, home) == kept_key(spec.dataset, home)[0]
    kept_place(spec.dataset, home).unlink()
    with pytest.raises(InputError, match=r"people\.key is gone, and there are releases of people; restore it") as told:
        private_key(spec, home)
    command = re.search(r"`\((.*)\)`", str(told.value))
    assert command is not None
    subprocess.run(["sh", "-c", command[1]], check=True)
    assert private_key(spec, home) == kept_key(spec.dataset, home)[0]


def test_a_stated_key_needs_no_private_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAWS", "ab" * 32)
    spec = ReleaseSpec.model_validate(policy() | {"draws": {"environment": "DRAWS"}})
    nowhere = Home(tmp_path / "none")
    assert private_key(spec, nowhere).material == bytes.fromhex("ab" * 32)
    assert not nowhere.root.exists()


def test_another_key_than_that_of_the_releases_is_refused_until_a_person_decides(home: Home) -> None:
    spec = ReleaseSpec.model_validate(policy())
    place = kept_place(spec.dataset, home)
    private_key(spec, home)
    place.write_text("ab" * 32)
    assert private_key(spec, home).material == bytes.fromhex("ab" * 32), "nothing is released yet"
    (home.releases / spec.dataset).mkdir()
    private_key(spec, home)
    place.write_text("cd" * 32)
    for _ in range(2):
        with pytest.raises(InputError, match="is not the one that its releases were drawn with; restore that") as told:
            private_key(spec, home)
    assert "cd" * 4 not in str(told.value)
    place.write_text("ab" * 32)
    private_key(spec, home)
    place.write_text("cd" * 32)
    command = re.search(r"`(rm .*)`", str(told.value))
    assert command is not None
    subprocess.run(["sh", "-c", command[1]], check=True)
    assert private_key(spec, home).material == bytes.fromhex("cd" * 32)
    left = b"".join(file.read_bytes() for file in home.private.glob("*mark"))
    assert b"cd" * 32 not in left


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), min_size=1, unique=True))
def test_a_block_has_one_number_per_key_purpose_and_domain(blocks: list[tuple[int, int]]) -> None:
    asked = np.array(blocks, dtype=np.uint64)
    key = Key(bytes(range(32)))
    drawn = key.pseudorandom("draws", "a", asked)
    assert drawn.shape == asked.shape
    np.testing.assert_array_equal(key.pseudorandom("draws", "a", asked[::-1])[::-1], drawn)
    assert len(np.unique(drawn, axis=0)) == len(asked)
    for other in (key.pseudorandom("draws", "b", asked), key.pseudorandom("order", "a", asked)):
        assert (other != drawn).any(axis=1).all()
    assert (Key(bytes(32)).pseudorandom("draws", "a", asked) != drawn).any(axis=1).all()


def test_a_key_of_another_owner_is_refused(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    kept_key("people", home)
    monkeypatch.setattr(os, "fstat", lambda file, tell=os.fstat: _of_another(tell(file)))
    with pytest.raises(InputError, match="belongs to another user; keep the key in a file of your own"):
        kept_key("people", home)


def _of_another(status: os.stat_result) -> os.stat_result:
    """The same file in the hands of somebody else, whoever runs the tests."""
    told = list(status)
    told[4] = os.geteuid() + 1  # st_uid
    return os.stat_result(told)


def test_a_key_is_never_readable_by_others_whatever_the_mask(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even for the moment between its making and its last mode."""
    modes: list[int] = []
    rename = os.replace

    def replace(source: str, final: Path) -> None:
        modes.append(stat.S_IMODE(Path(source).stat().st_mode))
        rename(source, final)

    monkeypatch.setattr(os, "replace", replace)
    mask = os.umask(0)
    try:
        kept_key("people", home)
        signing.make_key(home.root / "signing.pem")
    finally:
        os.umask(mask)
    modes.append(stat.S_IMODE((home.root / "signing.pem").stat().st_mode))
    assert modes == [0o600, 0o600]
