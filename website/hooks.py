"""Hooks of MkDocs: the README and its neighbours become pages, links that leave docs/ lead to the repository.

The files stay as readers on GitHub need them. A link to a file that does not exist ends a strict build.
"""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
# Files outside of docs/ that are pages of the site, and the page that each becomes.
OUTSIDE = {
    "README.md": "index.md",
    "README.zh.md": "zh.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
FRONT = {"index.md": "[Quick start](quickstart.md)", "zh.md": "[快速上手](quickstart.zh.md)"}
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()(?!https?:)([^)\s#]+)(?=[)#])")
log = logging.getLogger("mkdocs.hooks")


def on_files(files: Files, config: Any) -> Files:
    for source, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    uri = page.file.src_uri
    source = next((name for name, own in OUTSIDE.items() if own == uri), f"docs/{uri}")

    def site_link(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[1]))
        if not (ROOT / target).exists():
            log.warning("%s links to %s, which does not exist", source, link[1])
        if target in OUTSIDE or target.startswith("docs/"):
            inside = OUTSIDE.get(target) or target.removeprefix("docs/")
            return posixpath.relpath(inside, posixpath.dirname(uri) or ".")
        return f"{config.repo_url}/{'tree' if (ROOT / target).is_dir() else 'blob'}/main/{target}"

    parts = FENCE.split(markdown)  # what is fenced stands at the odd places
    parts[::2] = [LINK.sub(site_link, part) for part in parts[::2]]
    text = "".join(parts)
    if uri in FRONT:
        return front_page(text, page)
    if "\n## " not in text:  # no table of contents: the tables get its room
        page.meta["hide"] = ["toc"]
    return text


def front_page(text: str, page: Page) -> str:
    """The README across the whole width: a button under its first paragraph, and its last list as cards."""
    page.meta.update(hide=["navigation", "toc"], template="home.html")
    title, lede, rest = text.split("\n\n", 2)
    button = f"{FRONT[page.file.src_uri]}{{ .md-button .md-button--primary }}"
    body, _, links = rest.partition("\n\n- ")
    cards = f'<div class="grid cards" markdown>\n\n- {links}\n\n</div>'
    return "\n\n".join((title, lede, button, body, cards))
