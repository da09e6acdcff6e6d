"""GPT-2 on sequences of tokens, declared."""

from trainmark.workloads.gpt2.shared import SPEC
from trainmark.workloads.transformers.declare import transformer

WORKLOAD = transformer(SPEC, {"mlperf": "gpt2"})
