"""One rank of a small data-parallel training: what `train` does, with the weights kept at the end."""

import sys

import torch
import torch.distributed as dist
from pytorch_workload import CPU, asked, workload

RATE = 0.01
STEPS = 2


def main(folder: str) -> None:
    opt = asked("--batch", "4")
    dist.init_process_group("gloo")
    step = workload.Step(opt, workload.build_model(opt, CPU), CPU)
    batch = workload.synthetic_batch(opt, CPU)
    step.rate.fill_(RATE)
    for _ in range(STEPS):
        step(*batch)
    torch.save({"state": step.model.module.state_dict(), "batch": batch}, f"{folder}/rank{opt.rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
