"""The comparison of a figure with a stopwatch, and a program of our own in the place of a stranger."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import yaml
from benchmarks.strangers.__main__ import HERE, Recipe, recipes, run
from benchmarks.strangers.compare import Watch, rate, read_watch, verdict


def test_a_rate_has_the_steps_that_end_in_the_window():
    watch = Watch(passes=(0.0, 1.0, 2.0, 3.0, 4.0, 9.0), pauses=())
    assert rate(watch, (1.5, 4.5), 1, lambda _: 8) == pytest.approx(3 * 8 / 3)


def test_several_passes_are_one_step():
    watch = Watch(passes=(0.4, 1.0, 1.4, 2.0, 2.4, 3.0), pauses=())
    assert rate(watch, (0.5, 4.5), 2, lambda _: 1) == pytest.approx(2 / 2)


def test_an_evaluation_is_left_out():
    watch = Watch(passes=(1.0, 2.0, 7.0), pauses=((2.5, 6.5), (90.0, 91.0)))
    assert rate(watch, (0.0, 9.0), 1, lambda _: 1) == pytest.approx(2 / 2)


def test_no_step_in_the_window_is_no_rate():
    assert rate(Watch((1.0, 2.0), ()), (2.5, 3.0), 1, lambda _: 1) is None


def test_the_last_batch_of_an_epoch_counts_for_what_it_is():
    samples = Recipe("a", "b", "c", "d", samples=100, epoch=(3, 24)).samples_of("samples")
    assert [samples(number) for number in range(6)] == [100, 100, 24, 100, 100, 24]


def test_modes_are_read_as_pauses(tmp_path):
    (tmp_path / "1.times").write_text("pass 1\neval 2\neval 3\ntrain 5\npass 6\neval 7\n", encoding="utf-8")
    assert read_watch(tmp_path / "1.times") == Watch((1.0, 6.0), ((2.0, 5.0),))


@pytest.mark.parametrize(
    ("ratio", "doubts", "refusal", "expected"),
    [
        (1.019, (), "", "agrees"),
        (1.03, ("host-busy",), "", "WRONG without a doubt"),
        (1.03, ("host-busy", "mean-of-rates"), "", "doubted: mean-of-rates"),
        (None, (), "say --pattern with a regular expression", "refused, says what to give"),
        (None, (), "nothing was seen", "WRONG: refused without a remedy"),
        (None, (), "", "not compared"),
    ],
)
def test_a_verdict_asks_for_two_per_cent_or_a_doubt_or_a_remedy(ratio, doubts, refusal, expected):
    assert verdict(ratio, doubts, refusal) == expected


def test_at_least_thirty_programs_are_named_once_each_with_a_repository_at_a_commit():
    programs = [(recipe.repository, recipe.folder, recipe.run) for recipe in recipes()]
    assert len(set(programs)) == len(programs) >= 30
    repositories = yaml.safe_load((HERE / "recipes.yaml").read_text(encoding="utf-8"))["repositories"]
    assert {repository for repository, _, _ in programs} == set(repositories)
    assert all(len(commit) == 40 and license for commit, license in repositories.values())


PROGRAM = """
import time, torch
from torch.utils.data import DataLoader, TensorDataset
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(3):
    model.train()
    for (rows,) in DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=8):
        model(rows).sum().backward()
        optimizer.step()
        time.sleep(0.02)
    model.eval()
    time.sleep(0.1)
"""


def test_a_program_is_measured_beside_a_stopwatch_in_its_own_process(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "train.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "work").mkdir()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    words = f"{sys.executable} train.py"
    recipe = Recipe("own", "", "", words, options="--steps all --warmup 2", samples=8, pauses=False)
    outcome = run(recipe, tmp_path / "source", tmp_path / "work", path)
    assert (outcome.refusal, outcome.unit) == ("", "samples")
    assert (
        outcome.own is not None and 0.5 < (outcome.ratio or 0) < 2
    )  # how near is for a machine that is quiet
    assert len(list((tmp_path / "work" / "times").glob("*.times"))) == 1
