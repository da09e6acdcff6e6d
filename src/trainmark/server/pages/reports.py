"""The report of a run, made from its packed file once for each language and then read from a file."""

from __future__ import annotations

import os
import re
import tempfile
from html import unescape
from pathlib import Path

from trainmark import __version__
from trainmark.base.errors import UserError
from trainmark.pages.run.page import run_page
from trainmark.server.ingest.files import pack_path
from trainmark.server.settings import ServerSettings
from trainmark.store.report import report_of
from trainmark.store.unpack import unpack
from trainmark.view import html
from trainmark.view.catalogue import Lang

FOLDER = "reports"
META_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
SANDBOX = "sandbox allow-scripts allow-downloads; frame-ancestors 'none'"


class ReportError(Exception):
    """A packed file that is missing or cannot be read again."""


def report(settings: ServerSettings, sha256: str, lang: Lang) -> str:
    """Return the report; the files of other versions of Trainmark are not used."""
    place = settings.data / FOLDER / f"{sha256}.{__version__}.{lang}.html"
    try:
        return place.read_text(encoding="utf-8")
    except FileNotFoundError:
        pass
    text = render_report(pack_path(settings, sha256), lang)
    _write(place, text)
    return text


def render_report(pack: Path, lang: Lang) -> str:
    with tempfile.TemporaryDirectory(prefix="trainmark-report-") as folder:
        try:
            run = unpack(pack, Path(folder) / "run")
        except (OSError, UserError) as error:
            raise ReportError(f"the packed file cannot be read: {error}") from error
        return html.render(run_page(report_of(run)), lang)


def _write(place: Path, text: str) -> None:
    """One rename, so that no other request reads half of it."""
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=place.parent, suffix=".part")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(name).rename(place)


def policy_of(text: str) -> str:
    """Return the report's own policy, which names its scripts by hashes, in a sandbox without origin."""
    match = META_POLICY.search(text)
    own = unescape(match[1]) if match else "default-src 'none'; style-src 'unsafe-inline'"
    return f"{own}; {SANDBOX}"
