"""Opens the ledger's page in a real browser that can resolve no host."""

import re
import shutil
import subprocess

import pytest

from trainmark.published.ledger import load
from trainmark.report.ledger import page as ledger_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")
def test_the_plot_is_drawn_without_an_error_or_a_network(tmp_path):
    page = tmp_path / "ledger.html"
    page.write_text(ledger_page.render(load()), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--virtual-time-budget=10000"]
    alone = ["--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={tmp_path / 'profile'}"]
    ran = subprocess.run(
        [CHROMIUM, *flags, *alone, "--dump-dom", page.as_uri()],
        capture_output=True, text=True, encoding="utf-8", timeout=120, check=True,
    )  # fmt: skip
    root = re.search(r"<html[^>]*>", ran.stdout)[0]
    assert dict(re.findall(r'data-(\w+)="([^"]*)"', root)) == {"plots": "1", "errors": ""}
    assert '<svg role="img"' in ran.stdout
    assert ran.stdout.count("<tr><td") == 200
    assert f"{len(load()):,} rows" in ran.stdout
