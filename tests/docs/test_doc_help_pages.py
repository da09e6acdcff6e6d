"""The glossary and the page for trouble: complete, and of what the program really says."""

import pytest
from doc_pages import ROOT, code, page, section, table

GLOSSARY, TROUBLE = page("docs/glossary.md"), page("docs/troubleshooting.md")
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
