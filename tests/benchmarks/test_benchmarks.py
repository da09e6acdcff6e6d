"""Every measurement once, far too small to mean anything: that it runs and what it says, never how fast."""

from __future__ import annotations

import importlib
import math
from pathlib import Path

import pytest

SMALL = {
    "probe": {"pairs": 2, "steps": 1, "calls": 100},
    "hooks": {"pairs": 2, "steps": 1, "calls": 40},
    "profiling": {"pairs": 2, "steps": 1, "captures": 2},
    "startup": {"repeats": 2},
    "report": {"cases": 5, "trials_a_case": 2, "repeats": 2},
    "changes": {"steps": 2_000, "repeats": 2},
    "change_points": {"histories": 1, "cases": 2, "points": 15},
    "sequential": {"simulations": 10, "most_pairs": 10},
    "events": {"long": 100, "ranks": 3, "steps": 100},
    "reading": {"size": 100_000, "large": 100_000},
    "traces": {"events": 600, "large": 1200, "repeats": 2},
    "sampler": {"repeats": 2, "seconds": 0.6},
    "against": {"cases": 2, "reports": 2, "quick_runs": 0},
    "agents": {"sizes": (3,), "seconds": 1.0},
    "bisection": {"bisections": 1, "lengths": (4,)},
    "forecast": {"nodes": 4, "repeats": 2},
    "server": {"cases": 50, "results": 500, "requests": 40, "kills": 1, "packs": 3},
    "pictures": {"images": 10, "doublings": 1},
    "loading": {"images": 10, "doublings": 1, "repeats": 2},
    "conversion": {"images": 10, "doublings": 1, "repeats": 2},
}


def test_every_measurement_is_tried_here():
    assert SMALL.keys() == importlib.import_module("benchmarks.__main__").MEASUREMENTS.keys()


@pytest.mark.parametrize("name", SMALL)
def test_a_measurement_runs_and_gives_finite_figures(monkeypatch, name):
    monkeypatch.setenv("BASELINE", str(Path(__file__).parents[2]))
    rows = importlib.import_module(f"benchmarks.{name}").measure(**SMALL[name])
    assert rows
    assert all(row.what.startswith(f"{name}: ") and math.isfinite(row.value) for row in rows)


def test_what_misses_its_target_is_said_and_fails_the_command(monkeypatch, capsys):
    main, row = importlib.import_module("benchmarks.__main__"), importlib.import_module("benchmarks.row")
    startup = importlib.import_module("benchmarks.startup")
    monkeypatch.setattr(startup, "measure", lambda: [row.Row("startup: slow", 0.4, "s", target=0.3)])
    assert main.main(["startup"]) == 1
    assert "FAILS" in capsys.readouterr().out


def test_a_measurement_that_does_not_exist_is_named(capsys):
    assert importlib.import_module("benchmarks.__main__").main(["prob"]) == 2
    assert "'prob'" in capsys.readouterr().err


def test_a_value_beside_its_repeats_is_their_median_between_the_quartiles():
    row = importlib.import_module("benchmarks.row").from_repeats("x", [5.0, 1.0, 2.0, 4.0, 3.0], "s", 3.0)
    assert (row.low, row.value, row.high, row.holds) == (2.0, 3.0, 4.0, True)
