"""AdamW and LAMB in TensorFlow, with clipping to the global norm and steps that an overflow skips."""

import tensorflow as tf

from trainmark.workloads.common.frameworks.tensorflow import own
from trainmark.workloads.transformers.spec import clip_factor, is_decayed


def make_optimizer(opt, named, scale):
    """Return the recipe's optimizer of variables by name; `scale` is the loss scale, None without one."""
    if opt.recipe.optimizer == "lamb":
        return Lamb(opt.recipe, named, scale)
    return (FusedAdamW if opt.engine == "stock" else AdamW)(opt.recipe, named, scale)


class AdamW:
    """AdamW (Loshchilov & Hutter 2019) in single operations; Keras' has another place for epsilon."""

    title = "AdamW, written out"

    def __init__(self, recipe, named, scale):
        self.recipe, self.named, self.scale = recipe, named, scale
        self.first, self.second = (
            {name: tf.Variable(tf.zeros_like(value), trainable=False) for name, value in named.items()}
            for _ in range(2)
        )
        self.steps = own(0.0)

    def moments(self):
        """Return the variables of both moments by the names that a checkpoint has."""
        parts = ("first/", self.first), ("second/", self.second)
        return {prefix + name: value for prefix, moments in parts for name, value in moments.items()}

    def step(self, gradients, rate):
        """Clip the gradient to its global norm and update; an overflow leaves everything as it was."""
        scale = self.scale.value if self.scale is not None else 1.0
        norm = tf.linalg.global_norm(gradients) / scale
        factor = tf.minimum(clip_factor(norm, self.recipe.clip), 1.0) / scale
        gradients = [gradient * factor for gradient in gradients]
        beta1, beta2 = (tf.constant(beta) for beta in (self.recipe.beta1, self.recipe.beta2))
        if self.scale is None:
            steps = self.steps + 1.0
            powers = beta1**steps, beta2**steps
        else:
            # A branch would make the host wait for the answer: a step of rate 0 that keeps the moments whole.
            finite = tf.math.is_finite(norm)
            steps = self.steps + tf.cast(finite, tf.float32)
            powers = beta1 ** tf.maximum(steps, 1.0), beta2 ** tf.maximum(steps, 1.0)
            gradients = [tf.where(finite, gradient, 0.0) for gradient in gradients]
            rate = tf.where(finite, rate, 0.0)
            beta1, beta2 = (tf.where(finite, beta, 1.0) for beta in (beta1, beta2))
            self.scale.update(finite)
        self.steps.assign(steps)
        for name, gradient in zip(self.named, gradients):
            self.update(name, gradient, rate, beta1, beta2, powers)

    def update(self, name, gradient, rate, beta1, beta2, powers):
        variable, direction = self.named[name], self.direction(name, gradient, beta1, beta2, powers)
        variable.assign(variable * (1 - rate * self.decay(name)) - rate * direction)

    def direction(self, name, gradient, beta1, beta2, powers):
        """Move the moments, and return the direction of the step (Kingma & Ba 2015, bias corrected)."""
        first = beta1 * self.first[name] + (1 - beta1) * gradient
        second = beta2 * self.second[name] + (1 - beta2) * gradient * gradient
        self.first[name].assign(first)
        self.second[name].assign(second)
        return first / (1 - powers[0]) / (tf.sqrt(second / (1 - powers[1])) + self.recipe.epsilon)

    def decay(self, name):
        return self.recipe.weight_decay if is_decayed(self.named[name].shape) else 0.0


class FusedAdamW(AdamW):
    """The same by TensorFlow's operation for Adam, one kernel a tensor."""

    title = "AdamW, ResourceApplyAdam"

    def update(self, name, gradient, rate, beta1, beta2, powers):
        variable = self.named[name]
        if self.decay(name):
            variable.assign(variable * (1 - rate * self.decay(name)))
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self.first[name].handle,
            v=self.second[name].handle,
            beta1_power=powers[0],
            beta2_power=powers[1],
            lr=rate,
            beta1=beta1,
            beta2=beta2,
            # It adds epsilon before the bias correction of the second moment.
            epsilon=self.recipe.epsilon * tf.sqrt(1 - powers[1]),
            grad=gradient,
        )


class Lamb(AdamW):
    """LAMB (You et al. 2020): each matrix moves in proportion to its own norm."""

    title = "LAMB, written out"

    def update(self, name, gradient, rate, beta1, beta2, powers):
        variable, direction = self.named[name], self.direction(name, gradient, beta1, beta2, powers)
        if is_decayed(variable.shape):
            direction += self.recipe.weight_decay * variable
            weight_norm, length = tf.norm(variable), tf.norm(direction)
            ratio = tf.where(
                (weight_norm > 0) & (length > 0), tf.math.divide_no_nan(weight_norm, length), 1.0
            )
            direction *= ratio
        variable.assign_sub(rate * direction)
