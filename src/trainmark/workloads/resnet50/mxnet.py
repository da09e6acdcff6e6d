"""ResNet-50 v1.5 in MXNet: the model, the data, the step, main."""

import itertools

import mxnet as mx
import numpy as np
from mxnet import autograd
from mxnet.gluon import nn

from trainmark.workloads.common import optimizer
from trainmark.workloads.common.frameworks import mxnet as framework
from trainmark.workloads.images import sampling
from trainmark.workloads.resnet50.shared import data, program, recipe, tensors

# The model


class Bottleneck(nn.HybridBlock):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = width * recipe.EXPANSION
        self.conv1, self.bn1 = conv(inputs, width, 1), batch_norm(width)
        self.conv2, self.bn2 = conv(width, width, 3, stride), batch_norm(width)  # v1.5: the stride is here
        self.conv3, self.bn3 = conv(width, outputs, 1), batch_norm(outputs)
        self.relu = nn.Activation("relu")
        self.shortcut = nn.HybridSequential()
        if recipe.has_shortcut(inputs, width, stride):
            self.shortcut.add(conv(inputs, outputs, 1, stride), batch_norm(outputs))

    def hybrid_forward(self, F, x):  # noqa: N803 - Gluon passes the array or the symbol namespace as F
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


class ResNet50(nn.HybridBlock):
    def __init__(self):
        super().__init__()
        self.stem = nn.HybridSequential()
        self.stem.add(
            conv(3, 64, 7, 2), batch_norm(64), nn.Activation("relu"), nn.MaxPool2D(3, strides=2, padding=1)
        )
        self.blocks = nn.HybridSequential()
        self.blocks.add(*(Bottleneck(*block) for block in recipe.bottlenecks()))
        self.pool = nn.GlobalAvgPool2D()
        normal = mx.init.Xavier("gaussian", factor_type="in", magnitude=1)
        self.classifier = nn.Dense(recipe.CLASSES, in_units=recipe.features(), weight_initializer=normal)

    def hybrid_forward(self, F, x):  # noqa: N803
        return self.classifier(self.pool(self.blocks(self.stem(x))))


def conv(inputs, outputs, kernel, stride=1):
    he_normal = mx.init.Xavier("gaussian", factor_type="in", magnitude=2)
    options = {"use_bias": False, "in_channels": inputs, "weight_initializer": he_normal}
    return nn.Conv2D(outputs, kernel, stride, padding=kernel // 2, **options)


def batch_norm(channels):
    # MXNet's momentum is the share of the old statistics.
    old_share = 1 - recipe.BATCH_NORM_MOMENTUM
    return nn.BatchNorm(momentum=old_share, epsilon=recipe.BATCH_NORM_EPSILON, in_channels=channels)


def named_parameters(model):
    """Every parameter by its canonical name; blocks come in the order of the canonical layers."""
    blocks = []
    model.apply(blocks.append)  # children first, in the order in which they were set
    kinds = (nn.Conv2D, nn.BatchNorm, nn.Dense)
    named = {}
    for layer, block in zip(tensors.layers(), (b for b in blocks if isinstance(b, kinds))):
        if layer.kind == "norm":
            parts = block.gamma, block.beta, block.running_mean, block.running_var
        else:
            parts = block.weight, block.bias
        named.update(zip(tensors.tensor_names(layer), parts))
    return named


def build_model(opt):
    mx.random.seed(opt.seed)  # the same weights on every rank
    model = ResNet50()
    model.initialize()
    return model


# The data


def place(images, labels):
    """Make MXNet's arrays of host arrays, images as NCHW."""
    return mx.nd.array(images), mx.nd.array(labels, dtype=np.float32)


def normalise(loaded):
    """Make a loader's batches NCHW; here, and not before, pixels become float32."""
    moments = sampling.MEAN, sampling.DEVIATION
    mean, deviation = (mx.nd.array(part).reshape((1, 3, 1, 1)) for part in moments)
    for pixels, labels in loaded:
        images, labels = place(pixels.transpose(0, 3, 1, 2), labels)
        yield (images - mean) / deviation, labels


# The step


class Step:
    """Forward, backward and update of one batch; `ranks` is None where there is but one."""

    def __init__(self, opt, model, ranks):
        self.ranks, self.recipe = ranks, opt.recipe
        self.share = 1 / ranks.size if ranks is not None else 1.0
        self.is_lars = opt.recipe.optimizer == "lars"
        kind = MixupObjective if opt.recipe.mixup else Objective
        self.objective = kind(model, opt.recipe.label_smoothing)
        self.objective.hybridize(static_alloc=True, static_shape=True)
        named = named_parameters(model)
        trained = {name: named[name] for name in named if not tensors.is_statistic(name)}
        decay = 0.0 if self.is_lars else opt.recipe.weight_decay
        self.buckets = [Bucket(part, decay) for part in framework.buckets(trained)]
        self.last_rate = 0.0

    def __call__(self, images, labels, rate, lam):
        mixing = (mx.nd.array([lam]),) if self.recipe.mixup else ()
        with autograd.record():
            loss = self.objective(images, labels, *mixing)
        loss.backward()
        for bucket in self.buckets:
            if self.ranks is not None:
                bucket.sum_over(self.ranks)
            if self.is_lars:
                bucket.apply_lars(self.recipe, rate, self.share)
                bucket.update(1.0, self.recipe.momentum, 1.0)
            else:
                bucket.update(rate, self.momentum(rate), self.share)
        self.last_rate = rate
        mx.nd.waitall()  # the engine runs behind the host, and cannot be asked when it has passed a step
        return loss

    def momentum(self, rate):
        """MXNet's velocity is rate x buffer, at the rate of the step before; this makes it the new one's."""
        return self.recipe.momentum * rate / self.last_rate if self.last_rate else 0.0


class Objective(nn.HybridBlock):
    """The model and its loss in one graph: cross entropy with smoothed labels, the mean of the batch."""

    def __init__(self, model, smoothing):
        super().__init__()
        self.model, self.smoothing = model, smoothing

    def hybrid_forward(self, F, images, labels):  # noqa: N803 - Gluon's name of the operations
        return self.loss(F, F.log_softmax(self.model(images)), labels)

    def loss(self, F, log_p, labels):  # noqa: N803
        right, all_alike = F.pick(log_p, labels), F.mean(log_p, axis=1)
        smoothed = (1 - self.smoothing) * right + self.smoothing * all_alike
        return -F.mean(smoothed)


class MixupObjective(Objective):
    """The same of a mixup batch (Zhang et al. 2018)."""

    def hybrid_forward(self, F, images, labels, lam):  # noqa: N803
        return self.mixup_loss(F, images, labels, lam)

    def mixup_loss(self, F, images, labels, lam):  # noqa: N803
        wide = F.reshape(lam, shape=(1, 1, 1, 1))  # the operators of arrays do not broadcast
        images = F.broadcast_mul(images, wide) + F.broadcast_mul(F.flip(images, axis=0), 1 - wide)
        log_p = F.log_softmax(self.model(images))
        return optimizer.mixup(self.loss(F, log_p, labels), self.loss(F, log_p, F.flip(labels, axis=0)), lam)


class Bucket(framework.Bucket):
    """Some parameters with their gradients, and their velocities."""

    def __init__(self, named, decay):
        super().__init__(named)
        self.velocities = [mx.nd.zeros_like(weight) for weight in self.weights]
        self.decays = [decay * tensors.is_decayed(name) for name in named]

    def update(self, rate, momentum, share):
        mx.nd.multi_sgd_mom_update(
            *itertools.chain.from_iterable(zip(self.weights, self.gradients, self.velocities)),
            out=self.weights,
            num_weights=len(self.weights),
            lrs=[rate] * len(self.weights),
            wds=self.decays,
            momentum=momentum,
            rescale_grad=share,
        )

    def apply_lars(self, recipe, rate, share):
        """Scale each layer's gradient by the rate and its LARS trust ratio (You et al. 2017)."""
        self.flat *= share
        for weight, gradient in zip(self.weights, self.gradients):
            if optimizer.is_excluded_from_lars(weight.ndim):
                gradient *= rate
                continue
            decay, weight_norm, gradient_norm = recipe.weight_decay, weight.norm(), gradient.norm()
            ratio = optimizer.lars_trust_ratio(weight_norm, gradient_norm, recipe.trust, decay)
            ratio = mx.nd.where((weight_norm > 0) * (gradient_norm > 0), ratio, mx.nd.ones_like(ratio))
            gradient += decay * weight
            gradient *= rate * ratio.reshape((1,) * weight.ndim)


# Main


class Training(data.ImageTraining, framework.Training):
    """The verbs of the loop; see `common/training.py`."""

    def __init__(self, opt):
        super().__init__(opt)
        self.model = build_model(opt)
        self.trained = [p for p in self.model.collect_params().values() if p.grad_req != "null"]
        self.update = Step(opt, self.model, self.ranks)

    def place(self, images, labels):
        return place(images, labels)

    def feed(self, loaded):
        return normalise(loaded)

    def place_own(self, *batch):
        # It lies in pinned memory, of which a graph takes none beside other memory.
        return tuple(part.as_in_context(mx.cpu()) for part in batch)

    def step(self, images, labels, rate, lam=1.0):
        return self.update(images, labels, rate, lam)

    def evaluate(self, images, labels):
        best = mx.nd.topk(self.model(images), k=5)
        correct = mx.nd.broadcast_equal(best, labels.reshape((-1, 1)))
        return mx.nd.concat(correct[:, 0].sum(), correct.sum(), dim=0).asnumpy

    def parameters(self):
        return sum(parameter.data().size for parameter in self.trained)

    def load(self, values, momenta=None, rest=None):
        for name, parameter in named_parameters(self.model).items():
            parameter.set_data(mx.nd.array(values[name]))
        for name, velocity in self.velocities():
            velocity[:] = mx.nd.array(momenta[name]) if momenta else 0
        self.update.last_rate = rest["last_rate"] if rest else 0.0

    def tensors(self):
        named = named_parameters(self.model)
        return {name: parameter.data().asnumpy() for name, parameter in named.items()}

    def momenta(self):
        return {name: velocity.asnumpy() for name, velocity in self.velocities()}

    def velocities(self):
        for bucket in self.update.buckets:
            yield from zip(bucket.names, bucket.velocities)

    def rest(self):
        return {"last_rate": self.update.last_rate}


if __name__ == "__main__":
    program.main(framework, Training)
