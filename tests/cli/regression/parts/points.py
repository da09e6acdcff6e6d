"""Points on a plane, and the spec by which the common loop trains on them."""

import itertools
from pathlib import Path

import numpy as np

from trainmark.workloads.common import options
from trainmark.workloads.common.recipe import Recipe, Recipes
from trainmark.workloads.common.spec import TrainingSpec

RECIPES = Recipes(str(Path(__file__).with_name("recipes")), Recipe, default="short")
VALIDATION, STEPS = 16, 5


def parse(arguments, program):
    parser = options.parser(program, "linear regression", "points", RECIPES, datasets=["points"])
    parser.add_argument("--features", type=int, default=4)
    parser.add_argument("--epoch-samples", type=int, default=40)
    parser.add_argument("--until", action="append", type=lambda text: ("error", float(text[6:])))
    return options.parse(parser, arguments, RECIPES)


def draw(opt, count, *key):
    inputs = np.random.default_rng([opt.seed, opt.rank, *key]).standard_normal((count, opt.features))
    return inputs, inputs.sum(axis=1)


class Feed:
    steps_per_epoch, validation_samples = STEPS, VALIDATION

    def __init__(self, opt):
        self.opt = opt

    def open(self, training):
        return self

    def training(self, epoch, first=0):
        return (draw(self.opt, self.opt.batch, epoch, step) for step in range(first, STEPS))

    def evaluation(self):
        return [draw(self.opt, VALIDATION, 99)]

    def endless(self):
        return itertools.chain.from_iterable(map(self.training, itertools.count()))

    def start_facts(self):
        return {"training_points": STEPS * self.opt.global_batch}

    def end_facts(self):
        return {"spoiled_points": []}

    def close(self):
        """Nothing is open."""


class RegressionSpec(TrainingSpec):
    name, unit, package = "regression", "points", "regression"
    metrics, axes = {"error": "lower"}, ("features",)
    parse, check = staticmethod(parse), staticmethod(options.check)

    def settle(self, opt, world_size):
        return options.settle(opt, world_size, RECIPES)

    def flops_per_sample(self, opt):
        return 6 * opt.features

    def bytes_per_sample(self, opt):
        return 8 * opt.features

    def feed(self, opt):
        return Feed(opt) if opt.data == "points" else None

    def evaluation(self, totals, samples):
        return {"points": samples}, {"error": totals[0] / samples}

    def shapes(self, opt):
        return {"weight": (4,)}

    def is_statistic(self, name):
        return False
