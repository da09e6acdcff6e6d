"""Glossary, trouble and pipeline: complete, and of what the program and its files really say."""

import pytest
import yaml
from doc_pages import ROOT, blocks, code, page, section, table

GLOSSARY, TROUBLE = page("docs/glossary.md"), page("docs/troubleshooting.md")
PIPELINE = page("docs/pipeline.md")
SOURCE = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src" / "trainmark").rglob("*.py"))
MESSAGES = [
    words for row in table(section(TROUBLE, "What it says, and what to do")) for words in code(row["message"])
]


@pytest.mark.parametrize("message", MESSAGES)
def test_every_message_on_the_page_is_one_that_is_printed(message):
    assert message in SOURCE


def test_the_parts_of_a_result_line_are_explained_in_their_order():
    (line,) = [line for line in GLOSSARY.splitlines() if line.startswith("pytorch  ")]
    parts = [code(row["part"])[0] for row in table(section(GLOSSARY, "In a result line"))]
    places = [line.find(part) for part in parts]
    assert -1 not in places and places == sorted(places)


def test_the_terms_are_in_alphabetical_order():
    terms = [row["term"] for row in table(section(GLOSSARY, "Terms"))]
    assert terms == sorted(terms, key=str.lower)


@pytest.mark.parametrize("name", ["README.md", "README.zh.md", "docs/quickstart.md"])
def test_1n2g_is_explained_before_it_is_used(name):
    text = page(name)
    explained = text.index("`1n2g`")
    used = [text.find(word) for word in (" 1n2g ", "1n1g", "2n1g") if word in text]
    assert explained < min(used)


def test_the_inputs_of_the_action_are_in_the_table_with_their_defaults():
    action = yaml.safe_load(page("action.yml"))["inputs"]
    rows = {code(row["input"])[0]: code(row["default"]) for row in table(section(PIPELINE, "GitHub"))}
    assert list(rows) == list(action)
    written = {name: str(about.get("default", "")) for name, about in action.items() if name != "install"}
    assert {name: "".join(rows[name]) for name in written} == written


def test_the_workflows_on_the_page_give_inputs_that_exist():
    github, gitlab = (yaml.safe_load(block) for block in blocks(PIPELINE, "yaml"))
    *_, step = github["jobs"]["benchmark"]["steps"]
    assert set(step["with"]) <= set(yaml.safe_load(page("action.yml"))["inputs"])
    declared = next(yaml.safe_load_all(page("templates/benchmark.yml")))["spec"]["inputs"]
    assert set(gitlab["include"][0]["inputs"]) <= set(declared)
    required = {name for name, about in declared.items() if "default" not in about}
    assert required <= set(gitlab["include"][0]["inputs"])
