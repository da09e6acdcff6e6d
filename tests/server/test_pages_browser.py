"""The whole way in a real browser: runs are pushed, and the regression is seen, on a desk and on a phone."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

# `benchmarks` is run from the checkout and never installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.serving.packs import CREATED, DAY, MadeRun, packed
from benchmarks.serving.process import ServerProcess

from trainmark.server.access.tokens import Role

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH"),
]

RUNS, SLOWER_FROM, SLOWER = 14, 10, 0.93
PATHS = ("/cases", "/runs", "/machines", "/machines/1", "/leaderboard", "/published", "/search?q=softmax")
SIZES = {"desk": (1400, 900), "phone": (390, 844)}


def made(number: int) -> MadeRun:
    """Return the run of one day; from one of them on the framework is another one, and slower."""
    slower = number >= SLOWER_FROM
    level = 80.0 * (SLOWER if slower else 1.0) * (1 + 0.002 * ((number * 7) % 5 - 2))
    return MadeRun(
        name=f"nightly-{number + 1}",
        rates=tuple(level * (1 + 0.002 * step) for step in (-2, -1, 0, 0.5, 1, 2)),
        day=(time.time() - CREATED) // DAY - RUNS + number,
        version="2.10.0" if slower else "2.9.1",
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server to which the runs were pushed, the last two by the command."""
    folder = tmp_path_factory.mktemp("browser")
    process = ServerProcess(folder / "data")
    process.tokens = {role: process.token(role.value, role) for role in Role}
    process.start()
    environment = {
        **os.environ,
        "TRAINMARK_TOKEN": process.tokens[Role.PUSH],
        "TRAINMARK_SERVER": process.url,
    }
    for number in range(RUNS):
        file = packed(folder / "packs", made(number))
        if number < RUNS - 2:
            assert process.push(file, process.tokens[Role.PUSH]).status == 201
            continue
        command = [sys.executable, "-m", "trainmark", "push", str(file)]
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=120)
    yield process
    process.stop()


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def session(browser, server):
    """The cookies of a browser that has signed in."""
    context = browser.new_context(locale="en-US")
    opened = context.new_page()
    opened.goto(server.url)
    opened.fill("input[name=token]", server.tokens[Role.READ])
    opened.click("button.main")
    opened.wait_for_url(server.url + "/")
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture(params=[(size, scheme) for size in SIZES for scheme in ("light", "dark")], ids="-".join)
def page(request, browser, server, session):
    """A page that has signed in; `page.problems` has what the browser complains of."""
    (width, height), scheme = SIZES[request.param[0]], request.param[1]
    window = {"width": width, "height": height}
    context = browser.new_context(viewport=window, color_scheme=scheme, locale="en-US", storage_state=session)
    opened = context.new_page()
    opened.problems = []
    opened.on("console", lambda line: opened.problems.append(line.text) if line.type == "error" else None)
    opened.on("pageerror", lambda error: opened.problems.append(str(error)))
    opened.goto(server.url)
    yield opened
    context.close()


def fits(page) -> bool:
    """Whether nothing sticks out of the window to the right."""
    return page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_from_the_push_to_the_regression_and_its_report(page):
    card = page.locator(".news li.worse")
    assert card.count() == 1
    assert re.search(r"−[67]\.\d %", card.inner_text())
    assert "2.9.1 → 2.10.0" in card.inner_text()
    assert fits(page)

    card.locator("a.strong").click()
    page.wait_for_url("**/cases/*")
    label = page.locator(".chart g.bad text")
    assert re.search(r"−[67]\.\d %", label.text_content())
    assert label.is_visible()
    assert page.locator(".chart a circle").count() == RUNS
    assert fits(page)

    page.get_by_text("Compare the two sides").click()
    page.wait_for_url("**/compare?*")
    assert page.locator(".mark.not_conformant").inner_text() == "-"
    assert "2.10.0" in page.locator("main").inner_text()
    assert fits(page)

    page.go_back()
    page.locator(".chart a circle").last.click()
    page.wait_for_url("**/runs/*")
    assert page.locator("h1").inner_text() == f"nightly-{RUNS}"
    assert fits(page)

    page.get_by_text("Full report").click()
    page.wait_for_url("**/report")
    assert page.evaluate("document.documentElement.dataset.errors") == ""
    assert int(page.evaluate("document.documentElement.dataset.plots")) > 0
    assert page.problems == []


def test_pages_fit_the_window_and_the_browser_has_nothing_to_complain_of(page, server):
    for path in PATHS:
        page.goto(server.url + path)
        assert fits(page), path
        assert page.evaluate("document.documentElement.dataset.errors") == "", path
        assert page.problems == [], path


@pytest.mark.parametrize("page", [("desk", "light")], indirect=True, ids="-".join)
def test_the_report_cannot_read_the_pages_of_the_server(page, server):
    page.goto(server.url + "/runs")
    address = page.locator(".list td.stuck a").first.get_attribute("href")
    page.goto(f"{server.url}{address}/report")
    assert page.evaluate("self.origin") == "null"


@pytest.mark.parametrize("page", [("phone", "dark")], indirect=True, ids="-".join)
def test_runs_are_chosen_for_a_comparison(page, server):
    page.goto(server.url + "/runs")
    button = page.get_by_role("button", name="Compare the chosen")
    assert button.is_disabled()
    boxes = page.locator("input[name=run]")
    boxes.nth(0).check()
    boxes.nth(RUNS - 1).check()
    button.click()
    page.wait_for_url("**/compare?*")
    assert page.locator("h1").inner_text() == f"Comparison with nightly-{RUNS}"
