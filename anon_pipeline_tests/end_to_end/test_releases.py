"""`anon-pipeline releases`: signing, verifying with the public key alone, and withdrawing, as a user types them."""

import functools
import json
import os
import shutil
import stat
from pathlib import Path

from anon_pipeline.release import signing
from anon_pipeline_tests.end_to_end import harness
from anon_pipeline_tests.end_to_end.harness import Ended, Place, command


def _with_key(file: Path) -> None:
    os.environ[signing.FILE_VARIABLE] = str(file)


def signed(place: Place) -> Path:
    """The public key of a home whose ledger was signed on the command line."""
    folder = place.home.root.parent
    made = command("releases", "key", "--new", folder / "key.pem", home=place.home.root)
    assert made.exit_code == 0, made.said
    (folder / "public.pem").write_text(made.stdout)
    ended = releases(place, "sign")
    assert (ended.exit_code, ended.stdout) == (0, "1 ledger line is signed\n"), ended.said
    return folder / "public.pem"


def releases(place: Place, *words: object, key: bool = True) -> Ended:
    file = place.home.root.parent / "key.pem"
    return command(
        "releases", *words, home=place.home.root, sabotage=functools.partial(_with_key, file) if key else None
    )


def test_a_signed_ledger_is_verified_with_the_public_key_alone(published: Place) -> None:
    public_key = signed(published)
    assert releases(published, "key").stdout == public_key.read_text()
    shutil.rmtree(published.home.private)
    verified = releases(published, "verify", "--public-key", public_key, key=False)
    assert (verified.exit_code, verified.stderr) == (0, ""), verified.said
    assert "was not checked" in releases(published, "verify", key=False).stderr
    published.home.ledger.write_text(published.home.ledger.read_text().replace(" ", "  ", 1))
    assert releases(published, "verify", key=False).exit_code == 0  # the chain alone cannot know
    broken = releases(published, "verify", "--public-key", public_key, key=False)
    assert (broken.exit_code, broken.sentence) == (3, "the ledger is not what was signed with this key")


def test_withdrawing_from_a_signed_home(published: Place) -> None:
    public_key, release = signed(published), published.release
    told = ("withdraw", release.name, "--why", "a column [too] much")
    refused = releases(published, *told, key=False)
    assert refused.exit_code == 2
    assert f"is signed; set {signing.KEY_VARIABLE}" in refused.sentence
    assert (release / "data.parquet").exists()

    ended = releases(published, *told)
    assert ended.exit_code == 0, ended.said
    assert "whoever has copied it has it still" in ended.stdout
    assert [file.name for file in release.iterdir()] == ["manifest.json"]
    assert releases(published, "verify", "--public-key", public_key).exit_code == 0

    *_, line = json.loads(releases(published, "list", "--json").stdout)["releases"]
    assert (line["action"], line["why"]) == ("withdraw", "a column [too] much")
    assert "[too]" in releases(published, "list").stdout
    shown = releases(published, "show", release.name)
    assert ": a column [too] much" in shown.stdout and "withdrawn; only its manifest is left" in shown.stdout
    assert json.loads(releases(published, "show", release.name, "--json").stdout)["withdrawn"]["why"] == line["why"]

    again = releases(published, *told)
    assert again.exit_code == 2
    assert "was withdrawn already" in again.sentence


def test_commands_without_a_key_say_how_to_make_one(published: Place) -> None:
    for word in ("key", "sign"):
        ended = releases(published, word, key=False)
        assert ended.exit_code == 2
        assert "make one with `anon-pipeline releases key --new FILE`" in ended.sentence


def test_the_current_release_and_what_it_differs_in(published: Place) -> None:
    version, folder = published.release.name, published.release
    assert releases(published, "current", "people", key=False).stdout == f"{version}\n"
    assert releases(published, "current", "people", "--path", key=False).stdout == f"{folder}\n"
    assert json.loads(releases(published, "current", "people", "--json", key=False).stdout)["version"] == version
    assert (folder.parent / "current").resolve() == folder
    unknown = releases(published, "current", "nobody", "--json", key=False)
    assert (unknown.exit_code, json.loads(unknown.stdout)["exit_code"]) == (2, 2)
    assert "no release of it stands" in json.loads(unknown.stdout)["error"]

    same = releases(published, "diff", version, version, key=False)
    assert (same.exit_code, same.stdout) == (0, f"{version} and {version} tell the same of themselves\n")
    assert json.loads(releases(published, "diff", version, version, "--json", key=False).stdout)["changes"] == []


def test_a_home_that_is_not_there_is_no_empty_ledger(tmp_path: Path) -> None:
    for word in ("list", "verify"):
        ended = command("releases", word, home=tmp_path / "nowhere")
        assert ended.exit_code == 2
        assert "is no home with releases" in ended.sentence


def test_a_usage_error_is_told_in_json_too(published: Place) -> None:
    ended = releases(published, "list", "--jsn", "--json", key=False)
    assert ended.exit_code == 2
    assert json.loads(ended.stdout)["exit_code"] == 2


def test_a_release_beside_its_source_is_a_private_page_of_groups_of_k(published: Place) -> None:
    version = published.release.name
    ended = releases(published, "compare", version, "--spec", published.dataset, "--json", key=False)
    assert ended.exit_code == 0, ended.said
    told = json.loads(ended.stdout)
    columns = {column["name"]: column for column in told["columns"]}
    source = harness.people()
    assert list(columns) == ["age", "city", "sex", "ill", "visits"]
    for name, column in columns.items():
        assert sum(column["before"]) == len(source) == sum(column["after"]), name
        assert min(people for people in column["before"] if people) >= 10
    ill = dict(zip(columns["ill"]["groups"], columns["ill"]["before"], strict=True))
    assert ill == source["ill"].value_counts().to_dict()
    page = Path(told["page"])
    assert page.is_relative_to(published.home.private) and stat.S_IMODE(page.stat().st_mode) == 0o600
    assert "<svg" in page.read_text() and "in the source and as released" in page.read_text()
    published.dataset.joinpath("people.csv").write_text(harness.people(seed=2).to_csv(index=False))
    other = releases(published, "compare", version, "--spec", published.dataset, key=False)
    assert other.exit_code == 2 and "the source is not the one" in other.sentence
