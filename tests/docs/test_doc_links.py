"""Links lead somewhere, and both languages of the README say the same."""

import pytest
from doc_pages import LINK, PAGES, ROOT, anchors, blocks, page, prose

README, CHINESE = "README.md", "README.zh.md"
LINKING = sorted({*PAGES, *ROOT.glob("docs/*/**/*.md"), *ROOT.glob("fuzz/*.md")})


@pytest.mark.parametrize("source", LINKING, ids=lambda source: str(source.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file_and_a_heading_that_exist(source):
    for link in LINK.findall(prose(source.read_text(encoding="utf-8"))):
        if link.startswith("https://"):
            continue
        path, _, fragment = link.partition("#")
        target = (source.parent / path).resolve() if path else source
        assert target.exists(), link
        if fragment:
            assert fragment in anchors(target.read_text(encoding="utf-8")), link


def test_both_readmes_show_the_same_blocks():
    assert blocks(page(README), "shell", "text") == blocks(page(CHINESE), "shell", "text") != []


def test_both_readmes_link_to_the_same_pages():
    def linked(name):
        return [link for link in LINK.findall(page(name)) if link not in (README, CHINESE)]

    assert linked(README) == linked(CHINESE)
