"""A decoder of Llama 3's shape on sequences of tokens, declared."""

from trainmark.workloads.llama.shared import SPEC
from trainmark.workloads.transformers.declare import transformer

WORKLOAD = transformer(SPEC, {"mlperf": "llama31_8b"})
