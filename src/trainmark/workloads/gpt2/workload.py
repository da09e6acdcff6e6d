"""GPT-2 on sequences of tokens, declared."""

from __future__ import annotations

from trainmark.workloads.declaration import Workload
from trainmark.workloads.gpt2.shared import model, program
from trainmark.workloads.transformers.declare import decoder

WORKLOAD: Workload = decoder(
    name="gpt2",
    title="GPT-2",
    model=model,
    recipes=program.RECIPES,
    length=1024,
    names_elsewhere={"mlperf": "gpt2"},
)
