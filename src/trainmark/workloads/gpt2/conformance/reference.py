"""Writes reference.json of this family anew: python -m trainmark.workloads.gpt2.conformance.reference."""

from trainmark.workloads.transformers.conformance.reference import write

if __name__ == "__main__":
    write("gpt2")
