"""Links lead somewhere, and both languages of a page say the same."""

import pytest
from doc_pages import BLOCK, LINK, PAGES, ROOT, anchors, blocks, page, prose

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


@pytest.mark.parametrize("name", [README, "docs/quickstart.md", "docs/any-program.md"])
def test_both_languages_of_a_page_show_the_same_blocks(name):
    """Blocks that run do so on the English page: `shell` and `python3` on the Chinese one stand for them."""
    chinese = page(name.replace(".md", ".zh.md"))
    assert bodies(page(name)) == bodies(chinese) != []
    assert blocks(chinese, "sh", "python") == []


def bodies(text):
    return [body for _, body in BLOCK.findall(text)]


def test_both_readmes_link_to_the_same_pages():
    def linked(name):
        links = [link for link in LINK.findall(page(name)) if link not in (README, CHINESE)]
        return [link.replace(".zh.md", ".md") for link in links]

    assert linked(README) == linked(CHINESE)
