"""AdamW and LAMB in MXNet, over buckets of parameters."""

import math

import mxnet as mx
import numpy as np

from trainmark.workloads.common.frameworks import mxnet as framework
from trainmark.workloads.transformers.recipe import is_decayed

SQUARED_TOGETHER = 2**16  # elements: one float32 sum of all the squares would lose the fourth digit


def make_buckets(opt, named):
    """Return the parameters in buckets that the recipe's optimizer updates."""
    kind = Lamb if opt.recipe.optimizer == "lamb" else FusedAdamW if opt.engine == "stock" else AdamW
    return [kind(opt.recipe, part, opt.accumulate > 1) for part in framework.buckets(named)]


class AdamW(framework.Bucket):
    """AdamW (Loshchilov & Hutter 2019) in single operations."""

    title = "AdamW, written out"

    def __init__(self, recipe, named, accumulated):
        super().__init__(named, accumulated)
        self.recipe = recipe
        self.first, self.second = ([mx.nd.zeros_like(weight) for weight in self.weights] for _ in range(2))
        self.decays = [recipe.weight_decay * is_decayed(weight.shape) for weight in self.weights]

    def moments(self):
        """Return the arrays of both moments by the names that a checkpoint has."""
        for prefix, moments in (("first/", self.first), ("second/", self.second)):
            for name, moment in zip(self.names, moments):
                yield prefix + name, moment

    def sum_of_squares(self):
        """Return that of the gradients, once they are there."""
        self.flat.wait_to_read()
        starts = range(0, len(self.buffer), SQUARED_TOGETHER)
        parts = (self.buffer[start : start + SQUARED_TOGETHER] for start in starts)
        return sum(float(np.dot(part, part)) for part in parts)

    def update(self, rate, factor, steps):
        """Update by the gradients times `factor`, in the step of this number from 1."""
        beta1, beta2, epsilon = self.recipe.beta1, self.recipe.beta2, self.recipe.epsilon
        self.flat *= factor
        state = self.weights, self.gradients, self.first, self.second, self.decays
        for weight, gradient, first, second, decay in zip(*state):
            first[:] = beta1 * first + (1 - beta1) * gradient
            second[:] = beta2 * second + (1 - beta2) * gradient * gradient
            deviation = mx.nd.sqrt(second / (1 - beta2**steps)) + epsilon
            weight[:] = weight * (1 - rate * decay) - rate * (first / (1 - beta1**steps)) / deviation


class FusedAdamW(AdamW):
    """The same by MXNet's operation for many tensors at once."""

    title = "AdamW, multi_adamw_update"

    def update(self, rate, factor, steps):
        recipe, count = self.recipe, len(self.weights)
        # The operation corrects no bias: so the rate does, and epsilon takes the second moment's.
        correction = math.sqrt(1 - recipe.beta2**steps)
        mx.nd.contrib.multi_adamw_update(
            *(self.weights, self.gradients, self.first, self.second),
            rescale_grad=factor,
            lrs=[rate * correction / (1 - recipe.beta1**steps)] * count,
            wds=[rate * decay for decay in self.decays],
            etas=[1.0] * count,
            out=self.weights,
            beta1=recipe.beta1,
            beta2=recipe.beta2,
            epsilon=recipe.epsilon * correction,
        )


class Lamb(AdamW):
    """LAMB (You et al. 2020) by MXNet's operations, a tensor at a time."""

    title = "LAMB, lamb_update"

    def update(self, rate, factor, steps):
        recipe = self.recipe
        state = self.weights, self.gradients, self.first, self.second, self.decays
        for weight, gradient, first, second, decay in zip(*state):
            direction = mx.nd.lamb_update_phase1(
                *(weight, gradient, first, second),
                beta1=recipe.beta1,
                beta2=recipe.beta2,
                epsilon=recipe.epsilon,
                t=steps,
                bias_correction=True,
                wd=decay,
                rescale_grad=factor,
            )
            # Norms of zero stand for a trust ratio of 1, which norms and biases have.
            matrix = is_decayed(weight.shape)
            norms = [part.norm() if matrix else mx.nd.zeros((1,)) for part in (weight, direction)]
            mx.nd.lamb_update_phase2(weight, direction, *norms, lr=rate, out=weight)
