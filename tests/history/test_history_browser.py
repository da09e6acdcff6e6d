"""Opens the page of a history in a real browser and clicks beside a dot, as a finger does."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from shown_histories import as_page
from test_history_page import SLOWER, series, step

from trainmark.pages.history import histories

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Eight pixels off the middle of the fourth dot; then the cards that are to be seen, and the marked dots.
CLICK = """
const dot = document.querySelectorAll(".view.chosen .chart a circle")[3];
const box = dot.getBoundingClientRect();
const where = { clientX: box.left + 12, clientY: box.top + 4, bubbles: true };
document.querySelector(".view.chosen .area").dispatchEvent(new MouseEvent("click", where));
setTimeout(() => {
  const cards = [...document.querySelectorAll(".result-card")].filter((card) => card.offsetHeight);
  const names = cards.map((card) => card.querySelector("h3").firstChild.data.trim());
  document.documentElement.dataset.cards = names;
  document.documentElement.dataset.marked = document.querySelectorAll(".view.chosen a.current").length;
}, 500);
"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH"),
]


def test_a_click_beside_a_dot_shows_the_card_of_that_result_alone(tmp_path):
    document = as_page(histories([series(SLOWER)], step))
    document = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", document)
    path = tmp_path / "history.html"
    path.write_text(document.replace("</body>", f"<script>{CLICK}</script></body>"), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"]
    ran = subprocess.run(
        [CHROMIUM, *flags, f"--user-data-dir={tmp_path / 'profile'}", path.as_uri()],
        capture_output=True, text=True, encoding="utf-8", timeout=120, check=True,
    )  # fmt: skip
    root = re.search(r"<html[^>]*>", ran.stdout)
    attributes = dict(re.findall(r'data-(\w+)="([^"]*)"', root[0]))
    assert attributes == {"plots": "1", "errors": "", "cards": "night-4", "marked": "1"}
