"""Linear regression in numpy, driven by the loop that all families share."""

import itertools

import numpy as np
from regression.parts import points

from trainmark.probe import HostClock
from trainmark.workloads.common import loop, peaks, refusal
from trainmark.workloads.common.training import Training as CommonTraining


class Training(CommonTraining):
    def __init__(self, opt):
        self.opt, self.weight = opt, np.zeros(opt.features)

    def batches(self):
        return itertools.repeat(points.draw(self.opt, self.opt.batch))

    def step(self, inputs, targets, rate):
        error = inputs @ self.weight - targets
        self.weight -= rate * 2 / len(error) * inputs.T @ error / 4
        return np.mean(error**2)

    def read(self, loss):
        return lambda: float(loss)

    def evaluate(self, inputs, targets):
        return lambda: [np.sum((inputs @ self.weight - targets) ** 2)]

    def total(self, numbers):
        return numbers

    def tensors(self):
        return {"weight": self.weight}

    def momenta(self):
        return {}

    def load(self, tensors, momenta=None, rest=None):
        self.weight = tensors["weight"]

    def peak_flops(self):
        return peaks.peak_flops(lambda: self.weight @ self.weight, 4, HostClock())

    def close(self):
        """There are no other ranks."""


def check(opt):
    refusal.check([], framework="plain", capability=None, **vars(opt))


if __name__ == "__main__":
    loop.main(points.RegressionSpec(), "plain", Training, check, lambda: {"framework_version": "1.0"})
