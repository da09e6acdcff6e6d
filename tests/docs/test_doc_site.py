"""The documentation site builds in strict mode and is complete without a network."""

import re
import subprocess

import pytest
from doc_pages import ROOT

MKDOCS = ROOT / ".venv-docs" / "bin" / "mkdocs"
FETCHED = re.compile(r"<(?:script|img)[^>]*\bsrc=.?https?:|<link rel=.?(?:stylesheet|icon|pre)[^>]*https?:")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if not MKDOCS.exists():
        pytest.skip("MkDocs is not installed; make docs")
    folder = tmp_path_factory.mktemp("site")
    command = [MKDOCS, "build", "--strict", "--site-dir", folder]  # --quiet would pass over warnings
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder


def test_the_front_pages_are_the_readmes(site):
    assert "make demo" in (site / "index.html").read_text(encoding="utf-8")
    chinese = (site / "zh.html").read_text(encoding="utf-8")
    assert "两条命令" in chinese
    assert '<a class="md-button md-button--primary" href="quickstart.zh.html">快速上手</a>' in chinese


def test_no_page_fetches_anything_from_another_address(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    assert [page.name for page in pages if FETCHED.search(page.read_text(encoding="utf-8"))] == []
    # With this mark, the theme's script asks GitHub for the number of stars.
    assert 'data-md-component="source"' not in (site / "index.html").read_text(encoding="utf-8")
    assert [sheet for sheet in site.rglob("*.css") if "url(http" in sheet.read_text(encoding="utf-8")] == []


def test_links_out_of_the_pages_lead_to_the_repository(site):
    text = (site / "architecture.html").read_text(encoding="utf-8")
    assert 'href="https://github.com/trainmark/trainmark/tree/main/src/trainmark"' in text
    assert 'href="https://github.com/trainmark/trainmark/blob/main/src/trainmark/store/run.py"' in text
    assert 'href="contributing.html"' in (site / "index.html").read_text(encoding="utf-8")
