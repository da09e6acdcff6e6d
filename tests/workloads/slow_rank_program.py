"""The PyTorch workload with one rank that sleeps before every step."""

import os
import time

from trainmark.workloads.resnet50 import pytorch as workload
from trainmark.workloads.resnet50.shared import program


class Sleepy(workload.Training):
    def step(self, images, labels, rate, lam=1.0):
        if os.environ["RANK"] == os.environ["SLOW_RANK"]:
            time.sleep(float(os.environ["SLOW_SECONDS"]))
        return super().step(images, labels, rate, lam)


if __name__ == "__main__":
    program.main(workload.framework, Sleepy)
