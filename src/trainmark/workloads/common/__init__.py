"""What the programs of all workload families share: loop, epochs, checkpoints, clocks, ranks, refusals.

Runs inside every framework's interpreter: Python 3.7+, the standard library, numpy where arrays are handled;
`torch_ranks` and `kernel_tuning` inside PyTorch's. `conformance` and `layers64` are the harness's.
"""
