"""From a case to the key its result goes by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainmark.measure.key import Key
from trainmark.suite.model import Case, Command


def key_of(case: Case, device: str, facts: Mapping[str, Any]) -> Key:
    engine = case.engine if case.engine != "stock" else None
    captured = case.cuda_graph is True
    untouched = isinstance(case.workload, Command) and case.workload.untouched
    engines = engine, case.compiler, "cuda-graph" if captured else None
    return Key(
        workload=case.workload_name,
        framework=case.framework,
        framework_version=facts.get("framework_version"),
        variant=case.variant,
        axes=case.axes,
        precision=case.precision,
        loss_scale=case.loss_scale,
        layout=case.layout,
        compiler="+".join(filter(None, engines)) or None,
        data=case.data,
        batch_per_device=case.batch_per_device,
        nodes=case.topology.nodes,
        devices_per_node=case.topology.devices_per_node,
        device=device,
        threads=case.threads or (None if untouched else case.fair_threads),
        recipe=Path(case.recipe).stem if case.recipe else None,
        loader=case.loader,
        dataset=Path(case.dataset).name if case.dataset else None,
        target=case.course.target if case.course else None,
    )
