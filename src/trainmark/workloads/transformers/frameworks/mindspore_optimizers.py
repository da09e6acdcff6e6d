"""AdamW and LAMB in MindSpore: its own have no bias correction, or no parameters without trust ratio."""

import mindspore as ms
from mindspore import nn, ops

from trainmark.workloads.transformers.spec import clip_factor, is_decayed


def make_optimizer(opt, parameters):
    if opt.recipe.optimizer == "lamb":
        return Lamb(opt.recipe, parameters)
    return (AdamW if opt.engine == "plain" else FusedAdamW)(opt.recipe, parameters)


class AdamW(nn.Cell):
    """AdamW (Loshchilov & Hutter 2019) after clipping to the global norm, in single operations."""

    title = "AdamW, written out"

    def __init__(self, recipe, parameters):
        super().__init__()
        self.clip, self.beta1, self.beta2, self.epsilon = (
            recipe.clip,
            recipe.beta1,
            recipe.beta2,
            recipe.epsilon,
        )
        self.weights = parameters
        self.first, self.second = (parameters.clone(name, init="zeros") for name in ("first", "second"))
        self.steps = ms.Parameter(ms.Tensor(0.0, ms.float32), name="adam_step")
        self.decays = tuple(
            recipe.weight_decay if is_decayed(parameter.shape) else 0.0 for parameter in parameters
        )

    def construct(self, gradients, rate):
        squares = ()
        for gradient in gradients:
            squares += (ops.square(gradient).sum(),)
        factor = ops.minimum(clip_factor(ops.sqrt(ops.stack(squares).sum()), self.clip), 1.0)
        steps = ops.assign_add(self.steps, 1.0).astype(ms.float64)
        # In float64: a float32 power of 0.999 leaves four digits of the difference.
        mean_share, square_share = (
            1.0 - ops.pow(self.beta1, steps),
            1.0 - ops.pow(self.beta2, steps),
        )
        self.apply(gradients, factor, rate, mean_share.astype(ms.float32), square_share.astype(ms.float32))
        return rate

    def apply(self, gradients, factor, rate, mean_share, square_share):
        for index, gradient in enumerate(gradients):
            direction = self.direction(index, gradient * factor, mean_share, square_share)
            weight = self.weights[index]
            ops.assign(weight, weight * (1.0 - rate * self.decays[index]) - rate * direction)

    def direction(self, index, gradient, mean_share, square_share):
        """Move the moments, and return the direction of the step (Kingma & Ba 2015, bias corrected)."""
        first = self.first[index] * self.beta1 + gradient * (1.0 - self.beta1)
        second = self.second[index] * self.beta2 + ops.square(gradient) * (1.0 - self.beta2)
        ops.assign(self.first[index], first)
        ops.assign(self.second[index], second)
        return first / mean_share / (ops.sqrt(second / square_share) + self.epsilon)


class FusedAdamW(AdamW):
    """The same with MindSpore's kernel of Adam, which takes rate and epsilon with their bias corrections."""

    title = "ops.Adam"

    def __init__(self, recipe, parameters):
        super().__init__(recipe, parameters)
        self.adam = ops.Adam()

    def apply(self, gradients, factor, rate, mean_share, square_share):
        root = ops.sqrt(square_share)
        corrected, epsilon = rate * root / mean_share, self.epsilon * root
        for index, gradient in enumerate(gradients):
            weight = self.weights[index]
            if self.decays[index]:
                ops.assign(weight, weight * (1.0 - rate * self.decays[index]))
            moments = self.first[index], self.second[index]
            gradient = gradient * factor
            self.adam(weight, *moments, 0.0, 0.0, corrected, self.beta1, self.beta2, epsilon, gradient)


class Lamb(AdamW):
    """LAMB (You et al. 2020): each matrix moves in proportion to its own norm."""

    title = "LAMB, written out"

    def apply(self, gradients, factor, rate, mean_share, square_share):
        for index, gradient in enumerate(gradients):
            direction = self.direction(index, gradient * factor, mean_share, square_share)
            weight = self.weights[index]
            if self.decays[index]:
                direction = direction + self.decays[index] * weight
                norm, length = ops.sqrt(ops.square(weight).sum()), ops.sqrt(ops.square(direction).sum())
                both_positive = ops.logical_and(norm > 0, length > 0)
                direction = direction * ops.where(both_positive, norm / length, ops.ones_like(norm))
            ops.assign(weight, weight - rate * direction)
