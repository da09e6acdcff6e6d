"""What a suite asks for reaches the rank, and the result bears its name."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from trainmark.runner.command import key_of, workload_arguments
from trainmark.suite.load import load
from trainmark.suite.plan import fastest_choices
from trainmark.workloads.resnet50.shared import data, program


@pytest.mark.parametrize(("engine", "word", "compiler"), [("fused", "fused", "fused"), ("stock", None, None)])
def test_the_engine_is_told_to_the_rank_and_kept_in_key_and_name(tmp_path, engine, word, compiler):
    (tmp_path / "suite.yaml").write_text(f"name: light\nengine: {engine}\nlayout: NHWC\n")
    [case] = load(str(tmp_path / "suite.yaml"), ["device=cpu"]).cases
    case = fastest_choices(case)[0]
    argv = workload_arguments(case)
    assert (argv[argv.index("--engine") + 1] if "--engine" in argv else None) == word
    assert key_of(case, "cpu", {}).compiler == compiler
    assert ("fused" in case.slug) == (engine == "fused")


def test_the_crops_of_a_recipe_reach_the_loader(monkeypatch):
    given = {}
    monkeypatch.setattr("trainmark.workloads.images.dataset.open_split", lambda *_: None)
    monkeypatch.setattr(
        "trainmark.workloads.images.host.HostLoader",
        lambda *_, **more: given.update(more) or SimpleNamespace(),
    )
    opt = program.parse_options(["--data", "images", "--dataset", "pictures"], "program")
    opt.recipe = replace(opt.recipe, least_area=0.35)
    data.HostSource(opt, SimpleNamespace(feed=None, allocate=None))
    assert given["least_area"] == 0.35
