"""Which tests each command runs, by what a test was last seen to do, so that nobody tags one by hand.

| `--tier` | command | runs |
|---|---|---|
| `check` | `make check` | what starts no process and is done at once |
| `test` | `make test` | what takes a few seconds, one database, no other framework and no cluster |
| `rest` | `make test-all`, after `make test` | the others |

`--observe` writes what each test of this run did into observed.json: its seconds, and whether it started a
process. What is at once done and pure is not written, so a new test is in `check` until it was observed.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

OBSERVED = Path(__file__).with_name("observed.json")
# The most seconds of a test of a tier: its own, and its part of what it shares with other tests.
LIMITS = {"check": 1.0, "test": 3.0}
# Whoever needs these is never quick: other frameworks, four hosts, a second database.
ELSEWHERE = {"installed_environments", "hosts", "slurm", "ray_cluster", "postgres_cluster", "empty_database"}
SECOND_DATABASE = "postgresql"
STARTS = {"subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec"}
# Nothing is written of a test or a fixture that is quicker and starts no process.
WORTH_WRITING = 0.5

_started = 0


def _count_starts(event: str, _arguments: object) -> None:
    global _started
    if event in STARTS:
        _started += 1


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers")
    group.addoption("--tier", choices=("check", "test", "rest"), help="only the tests of one command")
    group.addoption("--observe", action="store_true", help=f"write what the tests do into {OBSERVED.name}")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("observe"):
        sys.addaudithook(_count_starts)
        config.pluginmanager.register(Observer(), "observer")


# Selecting


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    asked = config.getoption("tier")
    if asked is None:
        return
    observed = read_observed()
    kept = {"check": {"check"}, "test": {"check", "test"}, "rest": {"rest"}}[asked]
    users = Counter(name for item in items for name in _shared_fixtures(item))
    chosen = [item for item in items if tier_of(item, observed, users) in kept]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen
    if asked != "check":
        _longest_files_first(items, observed)


def _longest_files_first(items: list[pytest.Item], observed: dict[str, Any]) -> None:
    """So that no worker begins the longest file when the others are done."""
    seconds: Counter[Path] = Counter()
    for item in items:
        seconds[item.path] += observed["tests"].get(_name(item), {"seconds": 0.0})["seconds"]
    items.sort(key=lambda item: -seconds[item.path])


def tier_of(item: pytest.Item, observed: dict[str, Any], users: Mapping[str, int]) -> str:
    """Return the first tier whose limit the test keeps; `users` is how many tests share a fixture."""
    if _is_elsewhere(item):
        return "rest"
    own = observed["tests"].get(_name(item), {"seconds": 0.0, "starts": False})
    shared = {name: observed["fixtures"].get(name) for name in _shared_fixtures(item)}
    seconds = own["seconds"] + sum(seen["seconds"] / users[name] for name, seen in shared.items() if seen)
    starts = own["starts"] or any(seen["starts"] for seen in shared.values() if seen)
    if seconds <= LIMITS["check"] and not starts:
        return "check"
    return "test" if seconds <= LIMITS["test"] else "rest"


def _is_elsewhere(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    second = callspec is not None and SECOND_DATABASE in callspec.id.split("-")
    return second or not ELSEWHERE.isdisjoint(getattr(item, "fixturenames", ()))


def _name(item: pytest.Item) -> str:
    """All cases of a parametrized test are one, which takes what they take on average."""
    return item.nodeid.partition("[")[0]


def _shared_fixtures(item: pytest.Item) -> Iterator[str]:
    """Fixtures of a file, a folder or all tests, by where they stand."""
    info = getattr(item, "_fixtureinfo", None)
    for name, definitions in (info.name2fixturedefs if info else {}).items():
        if definitions and definitions[-1].scope != "function":
            yield f"{definitions[-1].baseid}::{name}"


# Observing


def read_observed() -> dict[str, Any]:
    if not OBSERVED.exists():
        return {"tests": {}, "fixtures": {}}
    return json.loads(OBSERVED.read_text(encoding="utf-8"))


class Observer:
    """In each worker what a test and its shared fixtures do; in the process that reports, all together."""

    def __init__(self) -> None:
        self._shared = 0.0
        self._fixtures: list[tuple[str, float, int]] = []
        self._cases: Counter[str] = Counter()
        self._seen: dict[str, dict[str, dict[str, Any]]] = {"tests": {}, "fixtures": {}}
        self._of_test: dict[str, dict[str, Any]] = defaultdict(lambda: {"seconds": 0.0, "starts": False})

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[None]:
        began, starts = perf_counter(), _started
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                name = f"{fixturedef.baseid}::{fixturedef.argname}"
                self._fixtures.append((name, perf_counter() - began, _started - starts))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> Iterator[None]:
        report = yield
        shared, self._fixtures = self._fixtures, []
        starts = _started - item.__dict__.get("_starts_before", _started) - sum(each[2] for each in shared)
        item.__dict__["_starts_before"] = _started
        # Shared fixtures are made within the setup of the first test that asks.
        report.observed = {"starts": starts > 0, "shared": shared}
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        item.__dict__["_starts_before"] = _started

    def pytest_runtest_logreport(self, report: Any) -> None:
        observed = getattr(report, "observed", None)
        if observed is None or report.outcome == "skipped":
            return
        name = report.nodeid.partition("[")[0]
        for fixture, seconds, starts in observed["shared"]:
            self._seen["fixtures"].pop(fixture, None)  # each worker has its own
            self._note("fixtures", fixture, seconds, starts > 0)
        of_test = self._of_test[report.nodeid]
        of_test["seconds"] += max(0.0, report.duration - sum(each[1] for each in observed["shared"]))
        of_test["starts"] |= observed["starts"]
        if report.when == "teardown":
            self._note("tests", name, **self._of_test.pop(report.nodeid))
            self._cases[name] += 1

    def _note(self, kind: str, name: str, seconds: float, starts: bool) -> None:
        known = self._seen[kind].setdefault(name, {"seconds": 0.0, "starts": False})
        known["seconds"] += seconds
        known["starts"] |= starts

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if "PYTEST_XDIST_WORKER" not in os.environ:
            for name, count in self._cases.items():
                self._seen["tests"][name]["seconds"] /= count
            _merge(self._seen)


def _merge(seen: dict[str, dict[str, dict[str, Any]]]) -> None:
    """Take over what was seen; the rest of the file stays. Runs side by side write one after the other."""
    with OBSERVED.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        observed = read_observed() if OBSERVED.stat().st_size else {"tests": {}, "fixtures": {}}
        for kind, entries in seen.items():
            both = {**observed[kind], **entries}
            observed[kind] = {
                name: {**both[name], "seconds": round(both[name]["seconds"], 1)}
                for name in sorted(both)
                if _tells(both[name])
            }
        text = json.dumps(observed, indent=0, ensure_ascii=False).replace('{\n"seconds"', '{"seconds"')
        file.truncate(0)
        file.write(text.replace(',\n"starts"', ', "starts"').replace("\n}", "}") + "\n")


def _tells(entry: dict[str, Any]) -> bool:
    return bool(entry["starts"]) or entry["seconds"] >= WORTH_WRITING
