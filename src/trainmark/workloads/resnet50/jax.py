"""ResNet-50 v1.5 in JAX: the model, the data, the step, main."""

import functools
from typing import NamedTuple

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

from trainmark.workloads.common import optimizer
from trainmark.workloads.common.frameworks import jax as framework
from trainmark.workloads.common.frameworks.jax import HALF, RANKS, on_host, prefetch, put
from trainmark.workloads.images import sampling
from trainmark.workloads.resnet50.shared import data, program, recipe, tensors

# The model


class Pass(NamedTuple):
    """One forward pass: the weights by canonical name, and what the batch norms see of the batch.

    To train, they put it into `moments`; to evaluate, they find the running statistics there.
    """

    weights: dict
    moments: dict
    layout: str
    training: bool = True


def bottleneck(net, name, x, stride):
    y = jax.nn.relu(batch_norm(net, name + ".norm1", conv(net, name + ".conv1", x)))
    y = conv(net, name + ".conv2", y, stride)  # v1.5: the stride is here
    y = jax.nn.relu(batch_norm(net, name + ".norm2", y))
    y = batch_norm(net, name + ".norm3", conv(net, name + ".conv3", y))
    if name + ".shortcut.conv.weight" in net.weights:
        x = batch_norm(net, name + ".shortcut.norm", conv(net, name + ".shortcut.conv", x, stride))
    return jax.nn.relu(y + x)


def resnet50(net, x):
    x = jax.nn.relu(batch_norm(net, "stem.norm", conv(net, "stem.conv", x, 2)))
    x = max_pool(net, x)
    for index, (_, _, stride) in enumerate(recipe.bottlenecks()):
        name = f"blocks.{index}"
        with jax.named_scope(name):
            x = bottleneck(net, name, x, stride)
    x = x.mean(axis=(net.layout.index("H"), net.layout.index("W")))
    weight, bias = net.weights["classifier.weight"], net.weights["classifier.bias"]
    return x @ weight.astype(x.dtype).T + bias.astype(x.dtype)


def conv(net, name, x, stride=1):
    """In the precision of `x`. The layout names the axes; how they lie in memory is XLA's choice."""
    weight = net.weights[name + ".weight"].astype(x.dtype)
    border = weight.shape[-1] // 2
    axes = (net.layout, "OIHW", net.layout)
    with jax.named_scope(name.rpartition(".")[2]):
        return lax.conv_general_dilated(
            x, weight, (stride, stride), [(border, border)] * 2, dimension_numbers=axes
        )


def batch_norm(net, name, x):
    """In float32; the moments are of the batch to train, the running ones to evaluate."""
    with jax.named_scope(name.rpartition(".")[2] + ".batch_norm"):
        channel = net.layout.index("C")
        others = tuple(axis for axis in range(4) if axis != channel)
        along = functools.partial(jnp.expand_dims, axis=others)
        shifted = x.astype(jnp.float32)
        if net.training:
            # Both moments from one reading of `x`, as deviations from some pixel of each channel: without
            # that, the variance of a channel far from zero would be a small difference of two large numbers.
            middle = tuple(slice(None) if axis == channel else x.shape[axis] // 2 for axis in range(4))
            origin = lax.stop_gradient(x[middle].astype(jnp.float32))
            shifted = shifted - along(origin)
            mean = shifted.mean(others)
            variance = jnp.maximum((shifted**2).mean(others) - mean**2, 0.0)
            net.moments.update({name + ".mean": mean + origin, name + ".variance": variance})
        else:
            mean, variance = net.moments[name + ".mean"], net.moments[name + ".variance"]
        scale = net.weights[name + ".scale"] * lax.rsqrt(variance + recipe.BATCH_NORM_EPSILON)
        bias = net.weights[name + ".bias"] - mean * scale
        return (shifted * along(scale) + along(bias)).astype(x.dtype)


def max_pool(net, x):
    window = [3 if axis in "HW" else 1 for axis in net.layout]
    strides = [2 if axis in "HW" else 1 for axis in net.layout]
    border = [(1, 1) if axis in "HW" else (0, 0) for axis in net.layout]
    return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, border)


def build_model(opt):
    """Return every tensor by its canonical name; drawn on the host, so that all ranks begin alike."""
    random = np.random.default_rng(opt.seed)
    values = {}
    for layer in tensors.layers():
        zeros = np.zeros(layer.shape[0], np.float32)
        if layer.kind == "norm":
            parts = zeros + 1, zeros, zeros, zeros + 1
        else:
            gain = 2.0 if layer.kind == "conv" else 1.0
            deviation = np.float32(np.sqrt(gain / np.prod(layer.shape[1:])))
            parts = random.standard_normal(layer.shape, np.float32) * deviation, zeros
        values.update(zip(tensors.tensor_names(layer), parts))
    return values


# The data


def normalise(opt, own, loaded):
    """Copy a loader's batches to the device; there, and not before, pixels become float32."""
    placed = ((put(own, pixels), put(own, labels.astype(np.int32))) for pixels, labels in loaded)
    for pixels, labels in prefetch(placed):
        yield numbers(pixels, opt.layout), labels
        pixels.block_until_ready()  # the loader writes a batch anew when two more are asked for


@functools.partial(jax.jit, static_argnums=1)
def numbers(pixels, layout):
    images = (pixels.astype(jnp.float32) - jnp.array(sampling.MEAN)) / jnp.array(sampling.DEVIATION)
    return images if layout == "NHWC" else images.transpose(0, 3, 1, 2)


# The step


class State(NamedTuple):
    """What a step takes and gives back in the same memory: tensors by canonical name, and the loss scale."""

    weights: dict
    momenta: dict
    statistics: dict  # each rank its own: one array of all ranks, spread over them
    scale: jax.Array
    good_steps: jax.Array  # since the scale has changed


SPREAD = State(weights=P(), momenta=P(), statistics=P(RANKS), scale=P(), good_steps=P())


def compiled(opt, mesh):
    """Compile the step, and the count of what is correct: each rank's own, with its own batch."""
    spread = functools.partial(jax.shard_map, mesh=mesh, check_vma=False)  # with it JAX would sum gradients
    step = spread(
        functools.partial(update, opt),
        in_specs=(SPREAD, P(RANKS), P(RANKS), P(), P()),
        out_specs=(SPREAD, P(RANKS)),
    )
    counting = spread(
        functools.partial(count, opt), in_specs=(SPREAD, P(RANKS), P(RANKS)), out_specs=P(RANKS)
    )
    return jax.jit(step, donate_argnums=0), jax.jit(counting)


def update(opt, state, images, labels, rate, lam):
    """Forward, backward and update as each rank does it; loss and statistics stay its own."""

    def scaled_loss(weights):
        net = Pass(weights, {}, opt.layout)
        if opt.recipe.mixup:
            loss = mixup_loss(opt, net, images, labels, lam)
        else:
            loss = plain_loss(opt, net, images, labels)
        return loss * state.scale, (loss, net.moments)

    gradients, (loss, moments) = jax.grad(scaled_loss, has_aux=True)(state.weights)
    gradients = lax.pmean(gradients, RANKS)
    good, scale, good_steps = True, state.scale, state.good_steps
    if opt.precision == "amp":
        good = jnp.all(jnp.stack([jnp.isfinite(gradient).all() for gradient in gradients.values()]))
        if opt.loss_scale == "dynamic":
            scale, good_steps = framework.rescaled(scale, good_steps, good)
    is_lars = opt.recipe.optimizer == "lars"
    weights, momenta = {}, {}
    with jax.named_scope("optimizer_step"):
        for name, weight in state.weights.items():
            gradient = gradients[name] / state.scale
            if is_lars:
                gradient = apply_lars(opt.recipe, weight, gradient, rate)
            elif tensors.is_decayed(name):
                gradient += opt.recipe.weight_decay * weight
            momentum = opt.recipe.momentum * state.momenta[name] + gradient
            momenta[name] = jnp.where(good, momentum, state.momenta[name])
            weights[name] = jnp.where(good, weight - (momentum if is_lars else rate * momentum), weight)
    share = recipe.BATCH_NORM_MOMENTUM
    statistics = {name: (1 - share) * old + share * moments[name] for name, old in state.statistics.items()}
    return State(weights, momenta, statistics, scale, good_steps), loss[None]


def logits(opt, net, images):
    return resnet50(net, images.astype(HALF.get(opt.precision, jnp.float32))).astype(jnp.float32)


def plain_loss(opt, net, images, labels):
    return smoothed_cross_entropy(logits(opt, net, images), labels, opt.recipe.label_smoothing)


def mixup_loss(opt, net, images, labels, lam):
    """Return the cross-entropy of a mixup batch (Zhang et al. 2018)."""
    scores, smoothing = (
        logits(opt, net, optimizer.mixup(images, images[::-1], lam)),
        opt.recipe.label_smoothing,
    )
    own, other = (smoothed_cross_entropy(scores, target, smoothing) for target in (labels, labels[::-1]))
    return optimizer.mixup(own, other, lam)


def smoothed_cross_entropy(logits, labels, smoothing):
    logarithms = jax.nn.log_softmax(logits)
    of_label = jnp.take_along_axis(logarithms, labels[:, None], axis=1)
    return -(1 - smoothing) * of_label.mean() - smoothing * logarithms.mean()


def apply_lars(by, weight, gradient, rate):
    """Scale a layer's gradient by the rate and its LARS trust ratio (You et al. 2017)."""
    if optimizer.is_excluded_from_lars(weight.ndim):
        return rate * gradient
    weight_norm, gradient_norm = jnp.linalg.norm(weight.ravel()), jnp.linalg.norm(gradient.ravel())
    ratio = optimizer.lars_trust_ratio(weight_norm, gradient_norm, by.trust, by.weight_decay)
    ratio = jnp.where((weight_norm > 0) & (gradient_norm > 0), ratio, 1.0)
    return rate * ratio * (gradient + by.weight_decay * weight)


def count(opt, state, images, labels):
    """Count how many are correct, and correct within five, by the running statistics."""
    net = Pass(state.weights, state.statistics, opt.layout, training=False)
    best = lax.top_k(logits(opt, net, images), 5)[1]
    correct = best == labels[:, None]
    return jnp.stack([correct[:, 0].sum(), correct.sum()])


# Main


class Training(data.ImageTraining, framework.Training):
    """The verbs of the loop; see `common/training.py`."""

    def __init__(self, opt):
        super().__init__(opt)
        self.run_step, self.count = compiled(opt, self.mesh)
        self.load(build_model(opt))

    def arranged(self, images, labels):
        if self.opt.layout == "NHWC":
            images = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
        return images, labels.astype(np.int32)

    def feed(self, loaded):
        return normalise(self.opt, self.own, loaded)

    def step(self, images, labels, rate, lam=1.0):
        self.state, loss = self.run_step(self.state, images, labels, np.float32(rate), np.float32(lam))
        return loss

    def evaluate(self, images, labels):
        mine = self.count(self.state, images, labels).addressable_data(0)
        mine.copy_to_host_async()
        return functools.partial(np.asarray, mine)

    def parameters(self):
        return sum(weight.size for weight in self.state.weights.values())

    def load(self, values, momenta=None, rest=None):
        trained = {name: value for name, value in values.items() if not tensors.is_statistic(name)}
        momenta = momenta or {name: np.zeros_like(value) for name, value in trained.items()}
        rest = rest or {"scale": optimizer.initial_loss_scale(self.opt), "good_steps": 0}
        self.state = State(
            weights={name: put(self.all, value) for name, value in trained.items()},
            momenta={name: put(self.all, momenta[name]) for name in trained},
            statistics={name: put(self.own, values[name]) for name in values if name not in trained},
            scale=put(self.all, np.float32(rest["scale"])),
            good_steps=put(self.all, np.int32(rest["good_steps"])),
        )

    def tensors(self):
        return on_host({**self.state.weights, **self.state.statistics})

    def momenta(self):
        return on_host(self.state.momenta)

    def rest(self):
        return on_host({"scale": self.state.scale, "good_steps": self.state.good_steps})


if __name__ == "__main__":
    program.main(framework, Training)
