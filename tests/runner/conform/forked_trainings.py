"""Trains with each of several copies of the workloads, in forks of one process that has imported PyTorch.

python forked_trainings.py CODE SHOWN [CODE SHOWN …] -- OPTIONS
"""

import os
import runpy
import sys

import torch._dynamo

WORKLOAD = "trainmark.workloads.resnet50.pytorch"


def main() -> None:
    divide = sys.argv.index("--")
    pairs, options = sys.argv[1:divide], sys.argv[divide + 1 :]
    torch.set_num_threads(1)
    for code, shown in zip(pairs[::2], pairs[1::2], strict=True):
        child = os.fork()
        if child == 0:
            sys.path.insert(0, code)
            sys.argv = [WORKLOAD, *options, "--conform", shown]
            runpy.run_module(WORKLOAD, run_name="__main__", alter_sys=True)
            sys.stdout.flush()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            sys.exit(f"{code} ended with status {status}")


if __name__ == "__main__":
    main()
