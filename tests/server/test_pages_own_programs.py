"""Every page over runs of a program that Trainmark knows nothing of: what is not known is left out."""

from __future__ import annotations

import re
import subprocess
import sys

import pages_client
import pytest
from pages_sample import stored
from starlette.routing import Route

from trainmark.server.access import tokens
from trainmark.server.access.tokens import Role
from trainmark.server.app import create_app
from trainmark.server.app import page_routes as routes
from trainmark.server.database.engine import opened, writing
from trainmark.server.database.migrate import upgrade
from trainmark.server.ingest.check import check
from trainmark.server.ingest.ingest import pack_path
from trainmark.server.settings import ServerSettings
from trainmark.store.archive import pack
from trainmark.store.run import RunFolder

PROGRAM = """
import time
for number in range(1, 41):
    time.sleep(0.002)
    print(f"step {number} loss {2 / number:.3f}", flush=True)
"""


def measured(folder, name: str, arguments: tuple[str, ...]) -> RunFolder:
    """Run an own program as a user does."""
    (folder / "own.py").write_text(PROGRAM)
    of_program = ["--samples-per-step", "8", "--pattern", r"step (?P<step>\d+) loss", "--steps", "20"]
    place = ["--repeats", "1", "--warmup", "5", "--name", name, "--runs", str(folder / "runs")]
    words = [
        sys.executable,
        "-m",
        "trainmark",
        "run",
        *of_program,
        *place,
        "--",
        sys.executable,
        "own.py",
        *arguments,
    ]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return RunFolder(folder / "runs" / name)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A server that has two runs of one program, and one with another argument; `uuids` are theirs."""
    folder = tmp_path_factory.mktemp("own")
    settings = ServerSettings(folder / "data", requests_per_minute=100_000)
    uuids = []
    with opened(settings) as engine:
        upgrade(engine)
        with writing(engine) as connection:
            secret = tokens.create(connection, "admin-bot", Role.ADMIN)
            identity = tokens.identity(connection, secret)
        for name, *arguments in (("first",), ("second",), ("other", "--width", "8")):
            packed = pack(measured(folder, name, tuple(arguments)), folder / f"{name}.trainmark")
            checked = check(packed.path, folder / f"{name}-unpacked", None)
            assert (
                checked.lines[0].case["framework"] == "" and "framework_version" not in checked.lines[0].facts
            )
            uuids.append(checked.run["uuid"])
            path = pack_path(settings, stored(engine, checked, identity, packed.sha256))
            path.parent.mkdir(parents=True, exist_ok=True)
            packed.path.rename(path)
    client = pages_client.Client(create_app(settings), secret)
    client.uuids = uuids
    return client


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_page_shows_runs_of_an_own_program(site, language):
    first, second, _ = site.uuids
    places = {
        "/runs/{uuid}": [f"/runs/{first}", f"/runs/{second}"],
        "/runs/{uuid}/report": [f"/runs/{first}/report"],
        "/cases/{id:int}": ["/cases/1", "/cases/1?by=version", "/cases/1?by=commit", "/cases/1?all=1"],
        "/machines/{id:int}": ["/machines/1"],
        "/compare": [f"/compare?run={first}&run={second}", f"/compare?run={first}"],
        "/search": ["/search?q=own", "/search?q=first"],
    }
    pages = [route.path for route in routes() if isinstance(route, Route) and "GET" in route.methods]
    for page in pages:
        if page == "/static/{name}":
            continue
        for path in places.get(page, [page]):
            answer = site.get(f"{path}{'&' if '?' in path else '?'}lang={language}")
            assert answer.status_code == 200, (path, answer.text)
            # Jinja writes None where a template does not look.
            assert not re.search(r">\s*None\s*<|\bUndefined\b", answer.text), path


def test_the_page_of_such_a_run_has_its_throughput(site):
    assert re.search(
        r'href="/cases/1">own[^<]*</a></td><td class="num"><span class="strong">[0-9,.]+<',
        site.get(f"/runs/{site.uuids[0]}").text,
    )


def test_another_argument_is_another_case_which_a_comparison_names(site):
    first, _, other = site.uuids
    labels = re.findall(r'<a href="/cases/\d">(own [^<]*)</a>', site.get("/cases").text)
    assert sorted(label.partition("own.py")[2] for label in labels) == ["", " --width 8"]
    assert "command +--width 8" in site.get(f"/compare?run={first}&run={other}&lang=en").text


def test_of_two_results_the_page_says_that_they_are_too_few_to_tell(site):
    text = site.get("/cases/1?lang=en").text
    assert "2 results: too few for a change of level" in text
    assert "No lasting change" not in text + site.get("/?lang=en").text
