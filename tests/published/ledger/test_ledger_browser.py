"""Opens the ledger's page in a real browser that can resolve no host."""

import re
import shutil
import subprocess

import pytest

from trainmark.logs.ledger import load
from trainmark.pages.ledger import ledger_page
from trainmark.view import html

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH"),
]


def opened(tmp_path, script=""):
    page = tmp_path / "ledger.html"
    text = html.render(ledger_page(load()))
    if script:
        text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
        text = text.replace("</body>", f"<script>{script}</script></body>")
    page.write_text(text, encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--virtual-time-budget=10000"]
    alone = ["--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={tmp_path / 'profile'}"]
    ran = subprocess.run(
        [CHROMIUM, *flags, *alone, "--dump-dom", page.as_uri()],
        capture_output=True, text=True, encoding="utf-8", timeout=120, check=True,
    )  # fmt: skip
    root = re.search(r"<html[^>]*>", ran.stdout)[0]
    return dict(re.findall(r'data-(\w+)="([^"]*)"', root)), ran.stdout


def test_the_plot_is_drawn_without_an_error_or_a_network(tmp_path):
    root, dom = opened(tmp_path)
    assert root == {"plots": "1", "errors": ""}
    assert '<svg role="img"' in dom
    assert dom.count("<tr><td") == 200
    assert f"{len(load()):,} rows" in dom


def test_rows_are_filtered_and_sorted_by_number(tmp_path):
    script = """
      const search = document.querySelector("input[type=search]");
      search.value = "bert-base pytorch";
      search.dispatchEvent(new Event("input"));
      [...document.querySelectorAll("button.sort")].find((one) => one.textContent === "throughput").click();
      const cells = [...document.querySelectorAll("#ledger tbody tr")].map((row) => row.cells[8].textContent);
      const figures = cells.map((cell) => cell.split(" ")[0].replaceAll(",", ""));
      document.documentElement.dataset.sorted = figures.join(" ");
    """
    root, dom = opened(tmp_path, script)
    shown = [float(figure) for figure in root["sorted"].split()]
    assert root["errors"] == ""
    assert len(shown) > 5 and shown == sorted(shown, reverse=True)
    assert 'aria-sort="descending"' in dom
