"""A JAX training whose rank 1 comes to its first step later than Gloo waits for a rank."""

import sys
import time

from trainmark.workloads.resnet50 import jax

LATER_SECONDS = 33  # Gloo waits 30


class Training(jax.Training):
    late = True

    def step(self, *batch, **options):
        if self.opt.rank == 1 and self.late:
            self.late = False
            time.sleep(LATER_SECONDS)
        return super().step(*batch, **options)


sys.argv[1:] = ["--device", "cpu", "--batch", "2", "--image-size", "32", "--steps", "2"]
jax.program.main(jax.framework, Training)
