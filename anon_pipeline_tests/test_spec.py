"""A spec that could be misread is refused, in a sentence that names the file and the field."""

from __future__ import annotations

from pathlib import Path

import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.spec import ReleaseSpec, Role

GOOD = """\
dataset: people
source: {path: people.csv, missing: ["?"]}
target: illness
columns:
  name: {role: identifier}
  age: {role: quasi_identifier, type: numeric, grid: 5}
  city: {role: quasi_identifier}
  illness: {role: sensitive}
  hobby: {role: insensitive}
  row: {role: exclude}
privacy:
  k_anonymity: {k: 10}
schedule: "0 3 * * *"
"""


def load(folder: Path, text: str) -> ReleaseSpec:
    (folder / "release.yaml").write_text(text, encoding="utf-8")
    return ReleaseSpec.load(folder)


def changed(before: str, after: str) -> str:
    assert GOOD.count(before) == 1
    return GOOD.replace(before, after)


def test_the_good_spec_is_read_as_it_is_written(tmp_path: Path) -> None:
    spec = load(tmp_path, GOOD)
    assert spec.k == 10
    assert spec.quasi_identifiers == ["age", "city"]
    assert spec.released == ["age", "city", "illness", "hobby"]
    assert spec.features == ["age", "city", "hobby"]
    assert spec.with_role(Role.IDENTIFIER, Role.EXCLUDE) == ["name", "row"]
    assert spec.source.missing == ("?",)
    assert spec.source_path == (tmp_path / "people.csv").resolve()


BAD = {
    "a bound on an attack that is not made holds nothing": (
        GOOD + "audit: {models: false, membership_auc: 0.6}\n",
        ["audit.membership_auc: bounds attacks on models, which audit.models switches off"],
    ),
    "a path into a record has a field": (
        changed("{path: people.csv,", "{path: people.csv, paths: {city: home},"),
        ["is a column and fields within it, as in address.postcode"],
    ),
    "a path into a record ends with a field": (
        changed("{path: people.csv,", "{path: people.csv, paths: {city: home.town.},"),
        ["is a column and fields within it, as in address.postcode"],
    ),
    "how many of each stratum are kept would tell the value of somebody who is not": (
        GOOD + "steps: [{technique: sample, columns: [city, illness], share: 0.9}]\n",
        ["steps.0.columns: 'illness' is sensitive", "take another column, or none"],
    ),
    "no part of the source is a larger part of the population": (
        GOOD + "sampling_fraction: 0.2\nsteps: [{technique: sample, share: 0.5}, {technique: sample, share: 0.3}]\n",
        ["sampling_fraction: 0.2 is more than the steps keep of the source (0.15)", "multiply that of the source"],
    ),
    "SQL would take two columns for one": (
        changed("  hobby:", "  Hobby: {role: exclude}\n  hobby:"),
        ["columns: Hobby and hobby differ by capitals only"],
    ),
    "a column has no name": (changed("hobby:", "' ':"), ["columns: a column without a name stands in it"]),
    "a column is called as the engines call theirs": (
        changed("hobby:", '"#People":'),
        ["columns: #People: is a name that is used for counting"],
    ),
    "the sizes of the classes would be overwritten": (
        changed("city:", "class_size:"),
        ["columns: class_size: is a name that the table of classes gives to another column"],
    ),
    "the ends of another column would be overwritten": (
        changed("city:", "age_high:"),
        ["columns: age_high: is a name that the table of classes gives to another column"],
    ),
    "loading a model from a folder runs what lies there": (
        GOOD + "guide: {model: {mlflow: /tmp/model}}\n",
        ["guide.model", "is no model of the home's MLflow store"],
    ),
    "a model would be fetched from elsewhere": (
        GOOD + "guide: {model: {mlflow: 'models://databricks:profile@host/name/1'}}\n",
        ["is no model of the home's MLflow store"],
    ),
    "a model's path leads out of its run": (
        GOOD + f"guide: {{model: {{mlflow: 'runs:/{'0' * 32}/../model'}}}}\n",
        ["is no model of the home's MLflow store"],
    ),
    "levels of numbers would be sorted as texts": (
        changed("grid: 5", "levels: [1, 2]"),
        ["columns.age: levels: needs type: categorical, and the type is numeric"],
    ),
    "a column would be placed twice": (
        changed(
            "city: {role: quasi_identifier}", "city: {role: quasi_identifier, levels: [a, b], hierarchy: {prefix: [1]}}"
        ),
        ["columns.city: has levels and a hierarchy"],
    ),
    "a hierarchy of a column that is kept would be ignored": (
        changed("hobby: {role: insensitive}", "hobby: {role: insensitive, hierarchy: {prefix: [2]}}"),
        ["columns.hobby: hierarchy: is of quasi-identifiers, and the role is insensitive"],
    ),
    "a level that stands twice has two places": (
        changed("city: {role: quasi_identifier}", "city: {role: quasi_identifier, levels: [a, b, a]}"),
        ["columns.city.levels: a level stands twice"],
    ),
    "longer prefixes would lie above shorter ones": (
        changed("city: {role: quasi_identifier}", "city: {role: quasi_identifier, hierarchy: {prefix: [2, 3]}}"),
        ["columns.city.hierarchy: prefix: each length is smaller"],
    ),
    "a hierarchy of no kind": (
        changed("city: {role: quasi_identifier}", "city: {role: quasi_identifier, hierarchy: {fil: a.csv}}"),
        ["columns.city.hierarchy: is calendar, {file: education.csv} or {prefix: [5, 3, 2]}"],
    ),
    "a misspelt parameter of a step would be ignored": (
        changed("city: {role: quasi_identifier}", "city: {role: quasi_identifier, steps: [{technique: prefix, x: 1}]}"),
        ["columns.city.steps: 0.", "x: is not a key of the spec", "`anon-pipeline steps prefix` lists what it takes"],
    ),
    "a misspelt key of a hierarchy would be ignored": (
        changed(
            "city: {role: quasi_identifier}", "city: {role: quasi_identifier, hierarchy: {file: a.csv, strickt: true}}"
        ),
        ["columns.city.hierarchy: strickt: is not a key of the spec"],
    ),
    "the spec's own target would be forgotten": (
        GOOD + "guide: {targets: [hobby]}\n",
        ["guide.targets: start with the target"],
    ),
    "a quasi-identifier would guide its own grouping": (
        GOOD + "guide: {targets: [illness, age]}\n",
        ["guide.targets: 'age' is no sensitive or insensitive column"],
    ),
    "an unknown key would be ignored": (GOOD + "spread: 2\n", ["spread: is not a key of the spec"]),
    "an unknown nested key would be ignored": (
        changed("grid: 5", "grd: 5"),
        ["columns.age.grd: is not a key of the spec; did you mean grid? check its spelling"],
    ),
    "an unknown key of a privacy model would be ignored": (
        changed("{k: 10}", "{k: 10, K: 3}"),
        ["privacy: k_anonymity.K: is not a key"],
    ),
    "the second of two equal keys would win": (GOOD + "target: hobby\n", ["'target' stands twice"]),
    "the second of two equal columns would win": (
        changed("  hobby:", "  age: {role: insensitive}\n  hobby:"),
        ["'age' stands twice"],
    ),
    "the grouping would hide what it is guided by": (
        changed("target: illness", "target: city"),
        ["target: 'city' is also a quasi-identifier"],
    ),
    "the target would not be there": (changed("target: illness", "target: x"), ["'x' is not among the columns"]),
    "the target would be left out": (changed("target: illness", "target: row"), ["target: 'row' has the role"]),
    "a class of one would be k-anonymous": (changed("k: 10", "k: 1"), ["privacy: k_anonymity.k:", "equal to 2"]),
    "k would be rounded": (changed("k: 10", "k: 2.5"), ["privacy: k_anonymity.k:"]),
    "k would be 1": (changed("k: 10", "k: true"), ["privacy: k_anonymity.k:"]),
    "k would be anything": (changed("{k: 10}", "{}"), ["privacy: k_anonymity.k: is missing"]),
    "nothing would be demanded": (changed("  k_anonymity: {k: 10}", "  {}"), ["k_anonymity must be demanded"]),
    "k would be written twice": (
        changed("k_anonymity: {k: 10}", "k_anonymity: [{k: 10}, {k: 2}]"),
        ["k_anonymity must be demanded, once"],
    ),
    "a demand would be forgotten": (
        GOOD.replace("schedule", "  k_anonimity: {k: 3}\nschedule"),
        ["privacy: 'k_anonimity' is no privacy model", "known are", "l_diversity"],
    ),
    "privacy would be a list of names": (
        changed("  k_anonymity: {k: 10}", "  - k_anonymity"),
        ["privacy: is a mapping from a privacy model"],
    ),
    "a demand would be made on what nobody protects": (
        GOOD.replace("schedule", "  l_diversity: {column: hobby, l: 2}\nschedule"),
        ["privacy.l_diversity.column: 'hobby' is no sensitive column", "illness"],
    ),
    "nobody would be grouped": (
        GOOD.replace("quasi_identifier", "insensitive"),
        ["columns: no column has the role quasi_identifier"],
    ),
    "a role would be made up": (changed("role: identifier", "role: secret"), ["columns.name.role:"]),
    "a role would be missing": (changed("city: {role: quasi_identifier}", "city: {}"), ["columns.city.role: is"]),
    "a type would be made up": (changed("type: numeric", "type: number"), ["columns.age.type:"]),
    "numbers would be divided by zero": (changed("grid: 5", "grid: 0"), ["columns.age.grid:"]),
    "all numbers would become 0": (changed("grid: 5", "grid: .inf"), ["columns.age.grid:"]),
    "the criterion would be infinite": (GOOD + "guide: {spread: .inf}\n", ["guide.spread:"]),
    "the criterion would be no number": (GOOD + "guide: {spread: .nan}\n", ["guide.spread:"]),
    "a model would be made up": (GOOD + "guide: {model: oracle}\n", ["guide.model"]),
    "a path could leave the home": (changed("dataset: people", "dataset: ../x"), ["dataset:"]),
    "the published statistics of people would lie in its folder": (
        changed("dataset: people", "dataset: people_statistics"),
        ["dataset: 'people_statistics' is what the published statistics of 'people' are called"],
    ),
    "a key that YAML takes for a truth": (changed("city:", "true:"), ["columns.1"]),
    "a template would be read as a mapping": (changed("people.csv", "{{ path }}"), ["is not valid YAML"]),
    "a date that the calendar lacks": (GOOD + "description: 2020-13-45\n", ["is not valid YAML"]),
    "brackets without end": (GOOD + "description: " + "[" * 400, ["is not valid YAML"]),
    "code would be run": (GOOD + "description: !!python/object/apply:os.getcwd []\n", ["is not valid YAML"]),
    "an empty file": ("", ["must be a mapping"]),
    "a list": ("- dataset\n", ["must be a mapping"]),
}


@pytest.mark.parametrize(("text", "sentences"), BAD.values(), ids=BAD)
def test_a_bad_spec_is_refused_in_sentences_with_file_and_field(
    tmp_path: Path, text: str, sentences: list[str]
) -> None:
    with pytest.raises(InputError) as refused:
        load(tmp_path, text)
    message = str(refused.value)
    assert message.startswith(str(tmp_path / "release.yaml") + ": ")
    for sentence in sentences:
        assert sentence in message
    assert "Traceback" not in message
    assert "pydantic" not in message
    assert "\n" not in message
    # Nor does an uncaught cause stand behind it, which would be printed with its input.
    assert refused.value.__context__ is None or refused.value.__suppress_context__


def test_several_mistakes_are_told_at_once_so_that_nobody_runs_five_times(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        load(tmp_path, changed("k: 10", "k: 1") + "spread: 2\nseed: -1\n")
    for field in ("k_anonymity.k", "spread", "seed"):
        assert f"release.yaml: {'privacy: ' if '.k' in field else ''}{field}" in str(refused.value)


def test_on_is_a_key_and_not_a_truth_value(tmp_path: Path) -> None:
    spec = load(tmp_path, changed("hobby:", "off:").replace("city:", "no:") + "guide: {on: label}\n")
    assert spec.guide.on == "label"
    assert "off" in spec.columns
    assert "no" in spec.columns


def test_merge_keys_of_yaml_are_not_taken_for_a_column(tmp_path: Path) -> None:
    text = changed("city: {role: quasi_identifier}", "city: &qi {role: quasi_identifier}\n  zip: {<<: *qi, grid: 2}")
    assert load(tmp_path, text).columns["zip"].role is Role.QUASI_IDENTIFIER


@pytest.mark.parametrize("what", ["absent.yaml", "folder_without_a_spec"])
def test_a_missing_spec_is_named(tmp_path: Path, what: str) -> None:
    (tmp_path / "folder_without_a_spec").mkdir()
    with pytest.raises(InputError, match=f"{what}.*: there is no such file"):
        ReleaseSpec.load(tmp_path / what)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "release.yaml").write_bytes(b"\xff\xfe\x00dataset")
    with pytest.raises(InputError, match=r"release.yaml: line 1 is not in UTF-8"):
        ReleaseSpec.load(tmp_path)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("k: 10", "k: 11"),
        ("grid: 5", "grid: 10"),
        ("hobby: {role: insensitive}", "hobby: {role: exclude}"),
        ('missing: ["?"]', 'missing: ["-"]'),
        ("target: illness", "target: hobby"),
        ("schedule:", "seed: 1\nschedule:"),
        ("schedule:", "guide: {spread: 0.5}\nschedule:"),
        ("schedule:", "recode: {form: range}\nschedule:"),
        ("schedule:", "  l_diversity: {column: illness, l: 2}\nschedule:"),
    ],
)
def test_another_policy_has_another_hash_else_a_stale_result_is_released(
    tmp_path: Path, before: str, after: str
) -> None:
    assert load(tmp_path, GOOD).policy_hash != load(tmp_path, changed(before, after)).policy_hash


@pytest.mark.parametrize(("before", "after"), [('"0 3 * * *"', '"5 4 * * *"'), ("people.csv", "other/people.csv")])
def test_the_hash_does_not_change_with_when_or_where_else_nothing_is_ever_the_same(
    tmp_path: Path, before: str, after: str
) -> None:
    assert load(tmp_path, GOOD).policy_hash == load(tmp_path, changed(before, after)).policy_hash


def test_a_query_is_not_published_and_yet_makes_a_stored_result_stale(tmp_path: Path) -> None:
    """It may quote values: `WHERE name <> 'Jane Doe'`."""
    path = "{path: people.csv"
    asked = load(tmp_path, changed(path, f"{path}, query: SELECT 1"))
    plain = load(tmp_path, GOOD)
    assert "query" not in asked.policy()["source"]
    assert asked.policy_hash == plain.policy_hash
    assert asked.input_hash != plain.input_hash


def test_a_spec_cannot_be_changed_after_it_was_validated(tmp_path: Path) -> None:
    spec = load(tmp_path, GOOD)
    with pytest.raises(ValueError, match="frozen"):
        spec.target = "age"  # type: ignore[misc]


def test_what_is_not_said_of_columns_and_targets_leaves_the_policy_as_it_was(tmp_path: Path) -> None:
    policy = load(tmp_path, GOOD).policy()
    assert not {"levels", "hierarchy"} & {key for column in policy["columns"].values() for key in column}
    assert "targets" not in policy["guide"]


@pytest.mark.parametrize("of", ["hierarchy: {file: towns.csv}", "steps: [{technique: hierarchy, file: towns.csv}]"])
def test_no_hash_of_a_list_is_published_and_yet_it_makes_a_stored_result_stale(tmp_path: Path, of: str) -> None:
    """Where it lists the values of the table, a hash confirms a guess at the only person who has one of them."""
    text = changed("city: {role: quasi_identifier}", f"city: {{role: quasi_identifier, {of}}}")
    spec = load(tmp_path, text)
    with pytest.raises(InputError, match=r"^columns.city.(hierarchy|steps.0): .*towns.csv: cannot be read"):
        _ = spec.input_hash
    (tmp_path / "towns.csv").write_text("Ulm;south;*\n")
    policy, asked = spec.policy_hash, spec.input_hash
    assert spec.replaced({"privacy.k_anonymity.k": 10}).input_hash == asked
    (tmp_path / "towns.csv").write_text("Ulm;west;*\n")
    assert spec.policy_hash == policy
    assert spec.input_hash != asked


@pytest.mark.parametrize(
    ("written", "levels"), [("[1, 2, ten]", ("1", "2", "ten")), ("[false, true]", ("false", "true"))]
)
def test_levels_are_texts_whatever_yaml_takes_them_for(tmp_path: Path, written: str, levels: tuple[str, ...]) -> None:
    spec = load(
        tmp_path, changed("city: {role: quasi_identifier}", f"city: {{role: quasi_identifier, levels: {written}}}")
    )
    assert spec.columns["city"].levels == levels


def test_a_spec_that_is_not_utf_8_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "release.yaml").write_bytes("dataset: x\ndescription: Köln\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"^[^:]+release\.yaml: line 2 is not in UTF-8; save the file as UTF-8"):
        ReleaseSpec.load(tmp_path)


def test_what_a_text_must_be_is_said_in_words_and_not_as_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "release.yaml").write_text(
        "dataset: My Clinic\nsource: {path: x}\ntarget: t\ncolumns: {}\nprivacy: {}\n"
    )
    with pytest.raises(InputError, match="dataset: begins with a small letter") as raised:
        ReleaseSpec.load(tmp_path)
    assert "pattern" not in str(raised.value)


STATED = "approver: A. Person\npurpose: research\nrecipients: [universities, the public]\nlicense: CC BY 4.0\n"


def test_what_an_owner_states_is_published_and_absent_it_changes_no_policy(tmp_path: Path) -> None:
    plain, stated = load(tmp_path, GOOD).policy(), load(tmp_path, GOOD + STATED).policy()
    keys = ("approver", "purpose", "recipients", "license")
    assert not set(keys) & set(plain)
    assert [stated.pop(key) for key in keys] == [
        "A. Person",
        "research",
        ["universities", "the public"],
        "CC BY 4.0",
    ]
    assert stated == plain


@pytest.mark.parametrize(
    "wrong", ["purpose: ''", 'purpose: "two\\nlines"', "recipients: everybody", "recipients: ['']", "license: 4.0"]
)
def test_what_an_owner_states_is_one_line_of_text(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(InputError, match=wrong.partition(":")[0]):
        load(tmp_path, f"{GOOD}{wrong}\n")


def with_source(written: str) -> str:
    return changed('source: {path: people.csv, missing: ["?"]}', f"source: {written}")


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ('{path: "s3://AKIA4711:geheim@clinic/people.csv"}', "source: path: holds a user, or the host of another"),
        ('{path: "abfss://clinic@geheim.example/people.csv"}', "source: path: holds a user, or the host of another"),
        ('{path: "az://clinic/people.csv?sig=geheim"}', "source: path: ends with the key of an object; take out"),
        ('{path: "https://geheim.example/people.csv"}', "source: path: lies at an address of a kind that is not read"),
        ('{path: "s3://clinic"}', "source: path: names no object"),
        ('{path: "s3://clinic/../geheim"}', "source: path: has a part of its key that is empty, . or .."),
        ('{delta: "s3://AKIA4711:geheim@clinic/people"}', "source: delta: holds a user"),
        ('{iceberg: "s3://clinic/a.metadata.json?geheim"}', "source: iceberg: "),
        ("{iceberg: people}", "source: iceberg: is the path of a metadata file"),
        ("{delta: people, path: people.csv}", "source: delta: names the table alone; remove path"),
        ("{delta: people, iceberg: a.b.c}", "source: "),
        ("{delta: people, snapshot: 3}", "source: snapshot: is that of iceberg tables"),
        ("{delta: people, query: SELECT 1}", "source: query: is not said of tables of delta"),
        ("{path: people.csv, version: 3}", "source: version: is that of delta tables"),
    ],
)
def test_a_place_that_holds_a_secret_or_is_none_is_refused_without_it(
    tmp_path: Path, written: str, sentence: str
) -> None:
    with pytest.raises(InputError) as told:
        load(tmp_path, with_source(written))
    assert sentence in str(told.value)
    assert "geheim" not in str(told.value)
    assert "4711" not in str(told.value)


def test_a_service_says_which_addresses_specs_may_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = [with_source('{path: "s3://clinic/ward/people.csv"}'), with_source('{delta: "s3://clinic/ward/people"}')]
    for text in written:
        assert load(tmp_path, text).source_path == tmp_path.resolve()
        monkeypatch.setenv("ANON_PIPELINE_ALLOW_FILES", "")
        with pytest.raises(InputError, match="put it into ANON_PIPELINE_ALLOW_OBJECTS"):
            load(tmp_path, text)
        monkeypatch.setenv("ANON_PIPELINE_ALLOW_OBJECTS", "gs://other s3://clinic/war")
        with pytest.raises(InputError, match="begins with no address that specs may name"):
            load(tmp_path, text)
        monkeypatch.setenv("ANON_PIPELINE_ALLOW_OBJECTS", "gs://other s3://clinic/ward/")
        load(tmp_path, text)
        monkeypatch.delenv("ANON_PIPELINE_ALLOW_FILES")
        monkeypatch.delenv("ANON_PIPELINE_ALLOW_OBJECTS")


def test_no_setting_of_a_trade_off_names_a_table_that_the_spec_may_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger's spec named an allowed population, and the owner's own table in place of it under `frontier`."""
    for folder in ("mine", "owned"):
        (tmp_path / folder).mkdir()
    text = GOOD + "frontier: {set: {privacy.k_map.population: [%s]}}\n"
    text = text.replace("  k_anonymity: {k: 10}", "  k_anonymity: {k: 10}\n  k_map: {k: 5, population: all.csv}")
    monkeypatch.setenv("ANON_PIPELINE_ALLOW_FILES", "")
    load(tmp_path / "mine", text % "all.csv, others.csv")
    with pytest.raises(InputError, match=r"\.\./owned/people\.csv: lies neither with the spec"):
        load(tmp_path / "mine", text % "../owned/people.csv")


@pytest.mark.parametrize("value", ["{k: 5}", "[[{k: 5}]]"])
def test_a_setting_of_a_trade_off_is_no_group_of_keys(value: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has a group of keys as a value; vary each key by a path of its own"):
        load(tmp_path, GOOD + f"frontier: {{set: {{privacy.k_anonymity.k: [{value}]}}}}\n")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (GOOD + "query: FROM people\n", "query: is not a key of the spec; did you mean source.query?"),
        (GOOD + "querry: FROM people\n", "querry: is not a key of the spec; did you mean source.query?"),
        (GOOD + "k_anonymity: {k: 3}\n", "did you mean privacy.k_anonymity?"),
        (changed("{path: people.csv,", "{path: people.csv, target: illness,"), "did you mean target at the top of the"),
        (GOOD + "guide: {control: twin}\n", "guide.control: is not a key of the spec; did you mean audit.control?"),
    ],
)
def test_a_key_in_the_wrong_place_is_told_where_it_belongs(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as told:
        load(tmp_path, text)
    assert sentence in str(told.value)


@pytest.mark.parametrize(("key", "meant"), [("columms", None), ("lenght", "length")])
def test_a_step_is_told_its_own_keys_alone(key: str, meant: str | None, tmp_path: Path) -> None:
    """`columns`, a key of other parts, was proposed to a step that does not take it."""
    step = f"steps: [{{technique: prefix, length: 1, {key}: 1}}]"
    with pytest.raises(InputError) as told:
        load(tmp_path, changed("city: {role: quasi_identifier}", f"city: {{role: quasi_identifier, {step}}}"))
    assert f"0.{key}: is not a key of the spec; " + (f"did you mean {meant}?" if meant else "check") in str(told.value)
