"""The documents keep their word: every command and every Python block in them is run, every link and name looked up.

The pages show Adult in full. Here they are run in a folder with the same paths, where `data/adult` is a small sample
guided by a fast model, so numbers in shown output differ; its words must not.

What a fenced block is: `sh` is run in a shell (a comment `# exit 3` states the exit code), `text` after it is what it
prints, `python` with prompts is a doctest, `python` or `yaml` whose first line is a path is that file, and any other
`yaml` is a part of Adult's spec.
"""

from __future__ import annotations

import doctest
import functools
import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pandas as pd
import pytest
import yaml
from threadpoolctl import threadpool_limits

from anon_pipeline.audit import regrouping
from anon_pipeline.pipeline.steps import attack_audit
from anon_pipeline.spec import PRIVACY_MODELS, ReleaseSpec
from anon_pipeline_tests.end_to_end import harness
from anon_pipeline_tests.end_to_end.harness import Ended, command
from anon_pipeline_tests.quick_spark import LOG, QUICK, write_defaults
from anon_pipeline_tests.skips import require_spark

ROOT = Path(__file__).parents[2]
DECISIONS = sorted(f"docs/decisions/{page.name}" for page in (ROOT / "docs/decisions").glob("*.md"))
PAGES = ["README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")), *DECISIONS]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"\A# ([\w./]+\.(?:py|yaml))\n")
EXIT = re.compile(r"\s+# exit (\d)$")
VERSION = re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{12}\b")
#: A command that needs no shell but for the variables before it.
COMMAND = re.compile(r"(?P<assigned>(?:\w+=(?:\$\([^)]*\)|[^\s$]+) +)*)anon-pipeline (?P<words>[^|><;&$]*)\Z")
#: A module of ours, which a process finds imported as a command does.
MODULE = re.compile(r"python -m (?P<module>(?:anon_pipeline|benchmarks)\.[\w.]+)(?P<words>[^|><;&$]*)\Z")
#: Of Adult all models are measured and attacked, since pages read their figures; of other datasets the guide alone.
ADULT = "guide: {model: decision_tree, folds: 2}\nutility: {folds: 2}\naudit: {people: 200, shadows: 4, targets: 100}\n"
MEASURED = "utility: {folds: 2, models: []}\naudit: {models: false, people: 200, shadows: 4, targets: 100}\n"
GUIDE = "guide: {model: decision_tree, folds: 2}\n" + MEASURED
#: Of the synthetic table few pairs of columns are counted: pages show what such a run says, and no figure of its rows.
SYNTHETIC = "synthesis: {epsilon: 1, rounds: 8}\n"
#: Specs of pages that leave to the defaults what is measured.
OF_DEFAULTS = ("data/clinic/release.yaml",)
PEOPLE = 1500
SPARK = "spark"


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    kind: str
    text: str

    @property
    def file(self) -> str | None:
        """The file that the block is, if it is one."""
        found = FILE.match(self.text)
        return found[1] if found and self.kind in ("python", "yaml") else None

    def write(self, folder: Path) -> Path:
        """Put the file that the block is where it belongs."""
        place = folder / str(self.file)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(self.text + (MEASURED if self.file in OF_DEFAULTS else ""))
        return place


def blocks(page: str) -> list[Block]:
    return [Block(page, found[1], found[2]) for found in FENCE.finditer((ROOT / page).read_text())]


def prose(page: str) -> str:
    return FENCE.sub("", (ROOT / page).read_text())


@dataclass(frozen=True)
class Desk:
    """The folder in which the pages' commands run, after `make release`; its version stands for that of the pages."""

    folder: Path
    done: dict[str, Ended]

    @property
    def version(self) -> str:
        release = (self.folder / "var/releases/adult/current").resolve()
        return release.name

    def run(self, line: str) -> Ended:
        """A line of a shell block. A run that several pages tell of is made once."""
        if line not in self.done or not line.startswith("anon-pipeline run "):
            self.done[line] = self._run(VERSION.sub(lambda _: self.version, line))
        return self.done[line]

    def _run(self, line: str) -> Ended:
        if line == "anon-pipeline run data/people":  # proposed with the default guide, which takes its time
            with (self.folder / "data/people/release.yaml").open("a") as spec:
                spec.write(GUIDE)
        if (module := MODULE.match(line)) is not None:
            return harness.module(module["module"], *module["words"].split(), home=self.folder / "var", at=self.folder)
        found = COMMAND.match(line)
        if found is None:
            return self._in_a_shell(line)
        variables = self._variables(found["assigned"]) if found["assigned"] else {}  # a fork, faster than a process
        return self.command(*shlex.split(found["words"], comments=True), variables=variables)

    def _variables(self, assigned: str) -> dict[str, str]:
        """What a shell makes of the assignments before a command."""
        names = re.findall(r"(\w+)=", assigned)
        values = self._in_a_shell(f"{assigned} printenv -0 {' '.join(names)}").stdout.split("\0")
        return dict(zip(names, values, strict=False))

    def _in_a_shell(self, line: str) -> Ended:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        ended = subprocess.run(
            line, shell=True, cwd=self.folder, env=os.environ | {"PATH": path}, capture_output=True, text=True
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def command(
        self, *words: str, register: bool = False, variables: Mapping[str, str] = MappingProxyType({})
    ) -> Ended:
        prepare = functools.partial(_prepare, str(self.folder), register, dict(variables))
        return command(*words, home=self.folder / "var", sabotage=prepare)


def _prepare(folder: str, register: bool, variables: dict[str, str]) -> None:
    """What happens in a command's process before it starts."""
    os.chdir(folder)
    os.environ |= variables
    os.environ["SPARK_CONF_DIR"] = str(Path(folder) / SPARK)
    if register:
        sys.path.insert(0, folder)
        PRIVACY_MODELS["bounded_gain"] = "bounded_gain:BoundedGain"


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    folder = harness.scratch()
    desk = Desk(folder, {})
    adult = folder / "data/adult"
    adult.mkdir(parents=True)
    everyone = pd.read_parquet(ROOT / "data/adult/adult.parquet")
    everyone.sample(PEOPLE, random_state=1).to_parquet(adult / "adult.parquet", index=False)
    spec, replaced = re.subn(r"(?m)^audit:.*\nguide:.*\n", ADULT, (ROOT / "data/adult/release.yaml").read_text())
    assert replaced == 1
    (adult / "release.yaml").write_text(spec)
    shutil.copy(ROOT / "data/adult/queries.yaml", adult)
    (folder / "data/adult_synthetic").mkdir()
    ReleaseSpec.load(ROOT / "data/adult_synthetic")  # as it stands, since a part of it is replaced here
    spec, replaced = re.subn(
        r"(?m)^synthesis:.*\n", SYNTHETIC, (ROOT / "data/adult_synthetic/release.yaml").read_text()
    )
    assert replaced == 1
    (folder / "data/adult_synthetic/release.yaml").write_text(spec)
    (folder / "data/clinic").mkdir()
    clinic = harness.people()
    clinic.insert(0, "name", [f"person {number}" for number in range(len(clinic))])
    clinic.to_csv(folder / "data/clinic/clinic.csv", index=False)
    for block in blocks("README.md"):  # other pages use this dataset, too, and may be looked at alone
        if block.file == "data/clinic/release.yaml":
            block.write(folder)
    write_visits(folder, 0)
    write_defaults(folder / SPARK, QUICK, LOG)
    (folder / ".venv").symlink_to(sys.prefix)
    (folder / "Makefile").symlink_to(ROOT / "Makefile")
    desk.done["make release"] = desk.command("run", "data/adult")
    assert desk.done["make release"].exit_code == 0, desk.done["make release"].said
    yield desk
    shutil.rmtree(folder)


def write_visits(folder: Path, seed: int) -> None:
    """The people of several pages, for each page others: the same people would be refused beside another page's."""
    visits = harness.people(seed=seed)
    visits.insert(0, "patient", [f"patient {number}" for number in range(len(visits))])
    (folder / "data/visits").mkdir(exist_ok=True)
    visits.to_csv(folder / "data/visits/visits.csv", index=False)


@pytest.fixture
def beside(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """The desk as the current folder, from which modules can be imported; what they register is forgotten."""
    monkeypatch.setattr(attack_audit, "regrouped", harness.replayed_briefly)  # in a process of a command, too
    monkeypatch.setattr(regrouping, "PEOPLE", regrouping.PEOPLE)  # which that changes
    monkeypatch.chdir(desk.folder)
    monkeypatch.syspath_prepend(str(desk.folder))
    registered, modules = dict(PRIVACY_MODELS), set(sys.modules)
    yield desk
    PRIVACY_MODELS.clear()
    PRIVACY_MODELS.update(registered)
    for name in set(sys.modules) - modules:
        if str(desk.folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)])
def test_a_page_can_be_followed_from_top_to_bottom(page: str, beside: Desk) -> None:
    write_visits(beside.folder, 1 + PAGES.index(page))
    names: dict[str, object] = {}
    printed = ""
    for block in blocks(page):
        if block.file is not None:
            place = block.write(beside.folder)
            importlib.invalidate_caches()
            if place.name == "release.yaml":
                ReleaseSpec.load(place)
        elif block.kind == "yaml":
            _is_part_of_a_spec(block.text)
        elif block.kind == "python":
            _prints_what_it_shows(block, names)
        elif block.kind == "sh":
            printed = "".join(_does_what_it_says(line, beside) for line in block.text.splitlines())
        elif block.kind == "text" and printed:
            shown = VERSION.sub("", block.text)
            absent = set(re.findall("[A-Za-z_]{3,}", shown)) - set(re.findall("[A-Za-z_]{3,}", printed))
            assert not absent, f"{page} shows words that are not printed: {absent}\n{printed}"
            printed = ""


def _does_what_it_says(line: str, desk: Desk) -> str:
    """Run a line of a shell block and return what it prints."""
    if line.startswith("make"):
        (target,) = line.split()[1:]
        assert re.search(rf"^{target}:.*##", (ROOT / "Makefile").read_text(), re.MULTILINE), f"no target {target}"
        return desk.done[line].said if line in desk.done else ""
    stated = EXIT.search(line)
    assert not line.startswith(("anon-pipeline ui", "anon-pipeline experiments")) or "--help" in line
    if "--engine spark" in line:
        require_spark()
    ended = desk.run(EXIT.sub("", line))
    assert ended.exit_code == int(stated[1] if stated else 0), f"{line}\n{ended.said}"
    return ended.said


def _prints_what_it_shows(block: Block, names: dict[str, object]) -> None:
    assert ">>> " in block.text, f"{block.page}: a Python block without prompts is not run: {block.text[:60]}"
    test = doctest.DocTestParser().get_doctest(block.text, {}, block.page, block.page, 0)
    test.globs = names
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    with threadpool_limits(1):  # small tables: threads would only wait for each other
        failed = runner.run(test, out=said.append, clear_globs=False).failed
    assert failed == 0, "".join(said)


def _is_part_of_a_spec(text: str) -> None:
    """Put some keys in the place of those of Adult's spec."""
    ReleaseSpec.model_validate(_read((ROOT / "data/adult/release.yaml").read_text()) | _read(text))


def _read(text: str) -> dict[str, object]:
    """YAML in which `on` is a key, as the loader of the specs has it."""
    content: dict[str, object] = yaml.safe_load(re.sub(r"\bon:", '"on":', text))
    return content


def test_spark_says_nothing_of_its_own_and_leaves_nothing_behind(desk: Desk) -> None:
    require_spark()
    ended = desk.run("anon-pipeline run data/adult --engine spark --threads 2 --memory 2GB")
    assert "stands already" in ended.said
    assert "WARN" not in ended.stderr
    assert "ERROR" not in ended.stderr
    spill = desk.folder / "var/private/spill"
    assert not list(spill.glob("session-*"))
    assert [file.name for file in spill.glob("sources/*")] in ([], ["lock"])  # its folder stays, and holds no source
    while [left for left in spill.iterdir() if left.name != "sources"]:  # the JVM removes what it spilled at its end
        time.sleep(0.1)


def test_the_privacy_model_of_the_page_refuses_and_releases(beside: Desk) -> None:
    (code,) = [one.text for one in blocks("docs/own-models.md") if one.file == "bounded_gain.py"]
    (beside.folder / "bounded_gain.py").write_text(code)
    demand = {"column": "ill", "gain": 0.5}
    spec = harness.policy("gain") | {"privacy": {"k_anonymity": {"k": 10}, "bounded_gain": demand}}
    harness.write_dataset(beside.folder / "gain", spec=spec)
    ended = beside.command("run", "gain", "--json", register=True)
    assert ended.exit_code == 0, ended.said
    (found,) = [one for one in json.loads(ended.stdout)["manifest"]["verified"] if one["name"] == "bounded_gain_ill"]
    assert found["holds"]
    assert 0 < found["measured"] <= 0.5
    table = beside.folder / "var/releases/gain/current/data.parquet"
    assert beside.command("verify", str(table), "--spec", "gain", register=True).exit_code == 0
    stricter = spec | {"privacy": {"k_anonymity": {"k": 10}, "bounded_gain": demand | {"gain": 0.001}}}
    harness.write_dataset(beside.folder / "stricter", spec=stricter)
    assert beside.command("verify", str(table), "--spec", "stricter", register=True).exit_code == 3


@pytest.mark.parametrize("page", [*PAGES, "CHANGELOG.md"])
def test_every_link_leads_somewhere(page: str) -> None:
    here = (ROOT / page).parent
    for text, target in re.findall(r"\[([^\]]+)\]\(([^)\s]+)\)", prose(page)):
        if target.startswith("http"):
            continue
        path, _, heading = target.partition("#")
        file = (here / path).resolve() if path else ROOT / page
        assert file.exists(), f"{page} links to {target}, which is not there"
        if heading:
            headings = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE)
            assert heading in {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}, target
        if text.startswith("`") and file.suffix == ".py":
            assert re.search(rf"\b(?:def|class) {text.strip('`')}\b", file.read_text()), f"{page}: {text} in {target}"


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES)
def test_commands_in_the_text_exist_with_their_options(page: str) -> None:
    from typer.main import get_command

    from anon_pipeline.cli import app

    for line in re.findall(r"`anon-pipeline ([^`]+)`", prose(page)):
        here = get_command(app)
        words = line.split()
        while words and hasattr(here, "commands"):
            assert words[0] in here.commands, f"{page}: anon-pipeline {line}"
            here = here.commands[words.pop(0)]
        options = {option for parameter in here.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, f"{page}: anon-pipeline {line}"


def test_names_in_the_text_are_those_of_the_code() -> None:
    text = "".join((ROOT / page).read_text() for page in PAGES)
    code = "".join(file.read_text() for file in (ROOT / "anon_pipeline").rglob("*.py"))
    for variable in set(re.findall(r"\bANON_PIPELINE_\w+", text)):
        assert f'"{variable}"' in code, variable
    assert set(re.findall(r'"(ANON_PIPELINE_\w+)"', code)) <= set(re.findall(r"\bANON_PIPELINE_\w+", text))
    for target in set(re.findall(r"`make ([a-z-]+)", text)):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), target
    for module in set(re.findall(r"python -m ([a-z_.]+)", text)) - {"pip"}:
        place = ROOT / module.replace(".", "/")
        assert place.with_suffix(".py").is_file() or (place / "__main__.py").is_file(), module
    steward = (ROOT / "docs/steward.md").read_text()
    assert [name for name in PRIVACY_MODELS if f"`{name}: {{" not in steward and f"{name}: {{" not in steward] == []
    template = (ROOT / "anon_pipeline/report/release_report.html").read_text()
    absent = [heading for heading in re.findall("<h2[^>]*>([^<{]+)</h2>", template) if f"**{heading}**" not in steward]
    assert not absent, f"docs/steward.md does not explain these parts of the report: {absent}"


def test_the_layers_of_the_engineers_page_are_those_of_the_package() -> None:
    page = (ROOT / "docs/engineer.md").read_text()
    shown = re.findall(
        r"^    ([a-z_, ]+?)  +\w", page.partition("## The layers")[2].partition("\n## ")[0], re.MULTILINE
    )
    there = {
        path.stem for path in (ROOT / "anon_pipeline").iterdir() if path.suffix == ".py" or list(path.glob("*.py"))
    }
    assert {name for layer in shown for name in layer.split(", ")} == there - {"__init__", "__main__"}


def test_every_demand_the_stewards_page_lists_is_one_a_spec_may_state() -> None:
    for row in re.findall(r"^\|[^|]+\| (.*) \|$", (ROOT / "docs/steward.md").read_text(), re.MULTILINE):
        for demand, name in re.findall(r"`((\w+): \{[^`]*\})`", row):
            assert name in PRIVACY_MODELS
            _is_part_of_a_spec(f"privacy: {{k_anonymity: {{k: 10}}, {demand}}}" if name != "k_anonymity" else "{}")


@pytest.mark.parametrize("page", [*PAGES, "CHANGELOG.md", ".pre-commit-config.yaml"])
def test_no_page_names_a_machines_own_folders(page: str) -> None:
    assert not re.search(r"(?<![\w.])/(?:tmp|home|root|work|usr|opt)\b", (ROOT / page).read_text())


def test_pre_commit_runs_tools_of_the_pinned_environment() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    pinned = (ROOT / "requirements/dev.txt").read_text()
    for hook in config["repos"][0]["hooks"]:
        tool = Path(hook["entry"].split()[0])
        assert tool.parent == Path(".venv/bin")
        assert f"\n{'import-linter' if tool.name == 'lint-imports' else tool.name}==" in f"\n{pinned}"


@pytest.mark.long
def test_importing_the_package_is_cheap_and_its_names_are_there() -> None:
    code = (
        "import sys, anon_pipeline\n"
        "heavy = {'pandas', 'numpy', 'sklearn', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "from anon_pipeline import AnonymizerTree, Released, ReleaseSpace, ReleaseSpec, run\n"
        "names = {one.__name__ for one in (AnonymizerTree, Released, ReleaseSpace, ReleaseSpec, run)}\n"
        "assert set(anon_pipeline.__all__) == names\n"
        "assert not {'dagster', 'mlflow', 'great_expectations'} & set(sys.modules)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
