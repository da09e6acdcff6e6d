"""A decoder of Llama 3's shape on sequences of tokens, declared."""

from __future__ import annotations

from trainmark.workloads.declaration import Workload
from trainmark.workloads.llama.shared import model, program
from trainmark.workloads.transformers.declare import decoder

WORKLOAD: Workload = decoder(
    name="llama",
    title="Llama 3",
    model=model,
    recipes=program.RECIPES,
    length=4096,
    names_elsewhere={"mlperf": "llama31_8b"},
)
