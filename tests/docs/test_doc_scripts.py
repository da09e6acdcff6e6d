"""What docs/scripts.md promises, against what the commands print."""

import json
import re
import sys

import pytest
from doc_pages import ROOT, code, page, table
from json_schemas import FOLDER, schemas

from trainmark.explain import as_json
from trainmark.launch.outcome import Outcome

sys.path.insert(0, str(ROOT / "tests" / "explain"))
from explain_documents import difference, resnet50

PAGE = page("docs/scripts.md")
OBJECTS = dict(re.findall(r"^### `([\w.\[\]]+)`\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL))
TYPES = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "object": dict,
    "list": list,
    "null": type(None),
}
KINDS = {"array" if kind == "list" else kind: types for kind, types in TYPES.items()}


@pytest.fixture(scope="module")
def printed(reader_of_a_run):
    """The JSON of each command, by the name that the page gives it."""
    commands = {
        "report": ("report", "one", "--format", "json"),
        "list": ("list", "--json"),
        "compare": ("compare", "one", "one", "--json"),
        "env": ("env", "--json"),
        "history": ("history", "--json"),
        "doctor": ("doctor", "--json", "--python", sys.executable),
        "forecast": ("forecast", "--step", "0.04", "--batch", "8", "--bandwidth", "1e9", "--json"),
    }
    explained = {
        "explain": json.dumps(as_json.tree(resnet50())),
        "difference": json.dumps(as_json.difference_tree(difference())),
    }
    texts = {name: reader_of_a_run.trainmark(*words).stdout for name, words in commands.items()}
    return {name: json.loads(text) for name, text in {**texts, **explained}.items()}


def values_at(path, printed):
    """All values at `report.results[].doubts[]` and the like."""
    name, *steps = re.findall(r"\w+|\[\]", path)
    values = [printed[name]]
    for step in steps:
        values = [item for value in values for item in (value if step == "[]" else [value[step]])]
    return values


def test_what_the_commands_print_is_what_the_page_lists(printed):
    assert len(OBJECTS) > 8
    for path, text in OBJECTS.items():
        rows = {code(row["name"])[0]: row["type"] for row in table(text)}
        for value in values_at(path, printed):
            assert set(value) == set(rows), path
            for name, kinds in rows.items():
                allowed = tuple(TYPES[kind] for kind in kinds.split(" or "))
                assert isinstance(value[name], allowed), f"{path}.{name}"


def test_every_outcome_that_a_trial_is_kept_with_is_listed():
    rows = {code(row["name"])[0]: row["meaning"] for row in table(OBJECTS["report.trials[]"])}
    assert {*code(rows["outcome"]), "interrupted"} == {outcome.value for outcome in Outcome}


def test_the_folder_of_a_run_is_as_the_page_draws_it(reader_of_a_run):
    run = reader_of_a_run.folder / "runs" / "one"
    files = [path for path in run.rglob("*") if run / "code" not in path.parents]
    names = {path.name for path in files if path.is_file() and not path.name.startswith(".")}
    drawn = PAGE.partition("```text\n")[2].partition("```")[0]
    assert set(re.findall(r"\w+\.(?:jsonl|json|yaml|html|md|csv|log|arrivals)\b", drawn)) == names


def test_bad_input_exits_with_2_and_one_sentence(hasty_reader):
    refused = hasty_reader.trainmark("run", "nowhere.yaml")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


def test_a_failed_trial_exits_with_1(hasty_reader):
    words = ("--set", "workload={command: 'exit 7'}", "--repeats", "1")
    assert hasty_reader.trainmark("run", "examples/probe/suite.yaml", *words).returncode == 1


def test_the_schemas_are_those_of_the_page():
    published = {path.stem: json.loads(path.read_text()) for path in FOLDER.glob("*.json")}
    assert published == schemas()


@pytest.mark.parametrize("name", ["report", "list", "compare", "explain", "difference"])
def test_what_a_command_prints_is_valid_by_its_schema(name, printed):
    assert list(violations(printed[name], schemas()[name])) == []
    assert list(violations({"runs": 5}, schemas()[name])) != []


def violations(value, schema, place="$"):
    """As much of JSON Schema as the published ones use."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not isinstance(value, tuple(KINDS[kind] for kind in kinds)):
        yield place
    for name in schema.get("required", ()) if isinstance(value, dict) else ():
        if name not in value:
            yield f"{place}.{name}"
        else:
            yield from violations(value[name], schema["properties"][name], f"{place}.{name}")
    for number, item in enumerate(value if isinstance(value, list) else ()):
        yield from violations(item, schema.get("items", {"type": list(KINDS)}), f"{place}[{number}]")
