"""Opens reports in a real browser that can resolve no host."""

import re
import shutil
import subprocess

import pytest
from run_pages import as_html
from sample_documents import cluster, cpu, h200, hostile, single, six
from trained_documents import trained

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH"),
]


def opened(document, lang, folder, script=""):
    """The page's own account of itself: the attributes of its root after all scripts ran.

    `script` is what a reader then does, on a page whose policy lets it.
    """
    page = folder / "report.html"
    text = as_html(document, lang)
    if script:
        text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
        text = text.replace("</body>", f"<script>{script}</script></body>")
    page.write_text(text, encoding="utf-8")
    flags = [
        "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
        "--disable-sync", "--disable-component-update", "--virtual-time-budget=10000", "--dump-dom",
    ]  # fmt: skip
    blocked = "--host-resolver-rules=MAP * ~NOTFOUND"
    ran = subprocess.run(
        [CHROMIUM, *flags, blocked, f"--user-data-dir={folder / 'profile'}", page.as_uri()],
        capture_output=True, text=True, encoding="utf-8", timeout=120, check=True,
    )  # fmt: skip
    root = re.search(r"<html[^>]*>", ran.stdout)
    assert root, "the browser gave no page back"
    return dict(re.findall(r'data-(\w+)="([^"]*)"', root[0])), ran.stdout


@pytest.mark.parametrize(
    ("document", "lang", "drawn"),
    [
        (h200(), "en", 5),
        (cpu(), "zh", 4),
        (single(), "en", 3),
        (six(), "zh", 4),
        (cluster(), "zh", 5),
        (trained(), "en", 4),
    ],
    ids=["h200", "cpu-zh", "single", "six-zh", "cluster-zh", "trained"],
)
def test_all_plots_are_drawn_without_an_error_or_a_network(document, lang, drawn, tmp_path):
    root, dom = opened(document, lang, tmp_path)
    assert root == {"plots": str(drawn), "errors": ""}
    assert len(re.findall('<svg role="img"', dom)) >= drawn
    assert dom.count("<title>") == 1


def test_hostile_text_does_not_run(tmp_path):
    root, dom = opened(hostile(), "en", tmp_path)
    assert root == {"plots": "5", "errors": ""}
    assert "<img" not in dom


def test_views_figures_and_series_are_switched(tmp_path):
    script = """
      document.querySelectorAll("[data-plot=throughput] .views button")[1].click();
      document.querySelector(".legend [data-series='0']").click();
      const select = document.querySelector("[data-plot=steps] select");
      select.selectedIndex = 2;
      select.dispatchEvent(new Event("change"));
      const display = (query) => getComputedStyle(document.querySelector(query)).display;
      const seen = (query) => [...document.querySelectorAll(query)].filter((one) => one.checkVisibility());
      document.documentElement.dataset.charts = seen("[data-plot=throughput] .chart").length
        + " " + seen("[data-plot=throughput] .chart")[0].textContent.includes("log scale")
        + " " + display("g[data-series='0']") + " " + display("g[data-series='1']")
        + " " + seen("[data-plot=steps] .choice")[0].querySelector("p").textContent;
    """
    root, _ = opened(h200(), "en", tmp_path, script)
    assert root == {"plots": "5", "errors": "", "charts": f"1 true none inline {h200().traces[2].case}"}


def test_the_value_under_the_pointer_is_shown(tmp_path):
    script = """
      const over = (point) => point.dispatchEvent(new PointerEvent("pointermove", {bubbles: true,
        clientX: point.getBoundingClientRect().x + 2, clientY: point.getBoundingClientRect().y + 2}));
      over(document.querySelector("[data-plot=efficiency] circle"));
      const point = document.querySelector(".tip").textContent;
      over(document.querySelector("[data-plot=steps] .area"));
      document.documentElement.dataset.tips = point;
    """
    root, _ = opened(h200(), "en", tmp_path, script)
    assert root["errors"] == ""
    assert re.fullmatch(r"pytorch amp/dynamic b256: 1n1g: 1?\d\d\.\d % \[[\d., ]+\]", root["tips"])
