"""ResNet-50 v1.5 in TensorFlow: the model, the data, the step, main."""

from typing import NamedTuple

from trainmark.workloads.common import optimizer
from trainmark.workloads.common.frameworks import tensorflow as framework
from trainmark.workloads.common.frameworks.tensorflow import own
from trainmark.workloads.images import sampling
from trainmark.workloads.resnet50.shared import data, program, recipe, tensors

tf = framework.tf  # which sets first what TensorFlow's import reads


# The model


class Bottleneck(tf.Module):
    def __init__(self, inputs, width, stride, layout):
        super().__init__()
        outputs = width * recipe.EXPANSION
        self.conv1, self.bn1 = Conv(inputs, width, 1, 1, layout), BatchNorm(width, layout)
        # v1.5: the stride is in the second.
        self.conv2, self.bn2 = Conv(width, width, 3, stride, layout), BatchNorm(width, layout)
        self.conv3, self.bn3 = Conv(width, outputs, 1, 1, layout), BatchNorm(outputs, layout)
        self.shortcut = []
        if recipe.has_shortcut(inputs, width, stride):
            self.shortcut = [Conv(inputs, outputs, 1, stride, layout), BatchNorm(outputs, layout)]

    def __call__(self, x, training):
        y = tf.nn.relu(self.bn1(self.conv1(x), training))
        y = tf.nn.relu(self.bn2(self.conv2(y), training))
        y = self.bn3(self.conv3(y), training)
        if self.shortcut:
            conv, norm = self.shortcut
            x = norm(conv(x), training)
        return tf.nn.relu(y + x)


class ResNet50(tf.Module):
    def __init__(self, layout):
        super().__init__()
        self.stem = [Conv(3, 64, 7, 2, layout), BatchNorm(64, layout), MaxPool(layout)]
        self.blocks = [Bottleneck(*block, layout) for block in recipe.bottlenecks()]
        self.classifier = Linear(recipe.features(), recipe.CLASSES)
        self.layout = layout

    def __call__(self, x, training=True):
        conv, norm, pool = self.stem
        x = pool(tf.nn.relu(norm(conv(x), training)))
        for block in self.blocks:
            with tf.name_scope("block"):  # for profiles
                x = block(x, training)
        return self.classifier(tf.reduce_mean(x, self.layout.pixels()))


class Conv(tf.Module):
    def __init__(self, inputs, outputs, kernel, stride, layout):
        super().__init__()
        self.weight = normal((kernel, kernel, inputs, outputs), variance=2 / (kernel**2 * inputs))
        self.kernel, self.stride, self.layout = kernel, stride, layout

    def __call__(self, x):
        padding = "SAME"
        if self.kernel > 1 and self.stride > 1:
            x, padding = bordered(x, self.kernel // 2, 0.0, self.layout)
        weight = tf.cast(self.weight, x.dtype)
        return tf.nn.conv2d(x, weight, self.stride, padding, data_format=self.layout.name)


class BatchNorm(tf.Module):
    def __init__(self, channels, layout):
        super().__init__()
        self.scale, self.bias = tf.Variable(tf.ones(channels)), tf.Variable(tf.zeros(channels))
        self.mean, self.variance = own(tf.zeros(channels)), own(tf.ones(channels))
        self.layout = layout

    def __call__(self, x, training):
        # The bare operation: tf.nn's would raise epsilon, and leave the running statistics to further ones.
        normed = tf.raw_ops.FusedBatchNormV3(
            x=x,
            scale=self.scale,
            offset=self.bias,
            mean=self.mean,
            variance=self.variance,
            epsilon=recipe.BATCH_NORM_EPSILON,
            exponential_avg_factor=recipe.BATCH_NORM_MOMENTUM,
            data_format=self.layout.name,
            is_training=training,
        )
        if training:
            self.mean.assign(normed.batch_mean)
            self.variance.assign(normed.batch_variance)
        return normed.y


class MaxPool(tf.Module):
    def __init__(self, layout):
        super().__init__()
        self.layout = layout

    def __call__(self, x):
        x, padding = bordered(x, 1, float("-inf"), self.layout)
        return tf.nn.max_pool2d(x, 3, 2, padding, data_format=self.layout.name)


class Linear(tf.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = normal((inputs, outputs), variance=1 / inputs)
        self.bias = tf.Variable(tf.zeros(outputs))

    def __call__(self, x):
        return x @ tf.cast(self.weight, x.dtype) + tf.cast(self.bias, x.dtype)


def normal(shape, variance):
    return tf.Variable(tf.random.normal(shape, stddev=variance**0.5))


class Layout(NamedTuple):
    """NCHW or NHWC, and whether an operation pads by itself or finds the padding on its input.

    Where convolutions pad by themselves, their gradients on the CPU go without oneDNN and take up to forty
    times as long. In XLA a pooling cannot.
    """

    name: str
    explicit_padding: bool

    def pixels(self):
        """The axes of rows and columns."""
        return [self.name.index("H"), self.name.index("W")]


def bordered(x, width, value, layout):
    """Input and padding of an operation with a stride, where "SAME" would pad one side more."""
    border = [[width, width] if axis in layout.pixels() else [0, 0] for axis in range(4)]
    return (x, border) if layout.explicit_padding else (tf.pad(x, border, constant_values=value), "VALID")


def layers(module):
    """All layers with weights in the order in which they were made; tf.Module would sort them by name."""
    for part in vars(module).values():
        for layer in part if isinstance(part, list) else [part]:
            if isinstance(layer, (Conv, BatchNorm, Linear)):
                yield layer
            elif isinstance(layer, tf.Module):
                yield from layers(layer)


def named_variables(model):
    """Every variable by its canonical name."""
    named = {}
    for layer, module in zip(tensors.layers(), layers(model)):
        parts = (getattr(module, part) for part in tensors.PARTS[layer.kind])
        named.update(zip(tensors.tensor_names(layer), parts))
    return named


def canonical(value):
    """An array in the canonical layout: outputs first, where TensorFlow has them last."""
    return value.transpose({1: (0,), 2: (1, 0), 4: (3, 2, 0, 1)}[value.ndim])


def dialect(value):
    """The reverse."""
    return value.transpose({1: (0,), 2: (1, 0), 4: (2, 3, 1, 0)}[value.ndim])


def build_model(opt):
    tf.random.set_seed(opt.seed)  # the same weights on every rank
    return ResNet50(Layout(opt.layout, explicit_padding=opt.device == "cuda" and not opt.compile))


# The data


def place(opt, images, labels):
    """Copy host arrays, images as NCHW, to the device in the layout that was asked for."""
    if opt.layout == "NHWC":
        images = images.transpose(0, 2, 3, 1)
    return tf.identity(images), tf.identity(labels)


def normalise(opt, loaded):
    """Copy a loader's batches to the device; there, and not before, pixels become float32."""
    for pixels, labels in framework.prefetch(loaded) if opt.device == "cuda" else loaded:
        images = (tf.cast(pixels, tf.float32) - sampling.MEAN) / sampling.DEVIATION
        yield images if opt.layout == "NHWC" else tf.transpose(images, (0, 3, 1, 2)), tf.identity(labels)


# The step


class Step:
    """Forward, backward and update of one batch on one rank."""

    def __init__(self, opt, model):
        self.opt, self.model, self.recipe = opt, model, opt.recipe
        self.is_lars = opt.recipe.optimizer == "lars"
        self.dtype = framework.HALF.get(opt.precision, tf.float32)
        named = named_variables(model)
        self.trained = {name: named[name] for name in named if not tensors.is_statistic(name)}
        self.momenta = {name: tf.Variable(tf.zeros_like(value)) for name, value in self.trained.items()}
        self.scale = framework.LossScale(opt) if opt.precision == "amp" else None
        if opt.compile:  # both sides of the exchange between the ranks, which XLA leaves to TensorFlow
            self.differentiate = tf.function(self.differentiate, jit_compile=True)
            self.apply_gradients = tf.function(self.apply_gradients, jit_compile=True)
            self.count = tf.function(self.count, jit_compile=True)

    def __call__(self, images, labels, rate, lam):
        loss, gradients = self.differentiate(images, labels, lam)
        gradients = framework.mean_over_ranks(self.opt, gradients)
        self.apply_gradients(gradients, rate)
        return loss

    def differentiate(self, images, labels, lam):
        with tf.GradientTape() as tape:
            loss = self.mixup_loss(images, labels, lam) if self.recipe.mixup else self.loss(images, labels)
            scaled = loss if self.scale is None else loss * self.scale.value
        return loss, tape.gradient(scaled, list(self.trained.values()))

    def loss(self, images, labels):
        return smoothed_cross_entropy(self.logits(images), labels, self.recipe.label_smoothing)

    def mixup_loss(self, images, labels, lam):
        """Return the cross-entropy of a mixup batch (Zhang et al. 2018)."""
        logits = self.logits(optimizer.mixup(images, tf.reverse(images, [0]), lam))
        targets, smoothing = (labels, tf.reverse(labels, [0])), self.recipe.label_smoothing
        own, other = (smoothed_cross_entropy(logits, target, smoothing) for target in targets)
        return optimizer.mixup(own, other, lam)

    def logits(self, images, training=True):
        return tf.cast(self.model(tf.cast(images, self.dtype), training), tf.float32)

    def apply_gradients(self, gradients, rate):
        momentum = tf.constant(self.recipe.momentum)
        if self.scale is not None:
            gradients, finite = self.scale.remove(gradients)
        if self.is_lars:
            gradients, rate = list(self.apply_lars(gradients, rate)), tf.constant(1.0)
        if self.scale is not None:
            # A step that overflowed leaves all as it was; a branch would make the host wait for the answer.
            rate, momentum = tf.where(finite, rate, 0.0), tf.where(finite, momentum, 1.0)
        for (name, variable), gradient in zip(self.trained.items(), gradients):
            if tensors.is_decayed(name) and not self.is_lars:
                gradient += self.recipe.weight_decay * variable
            if self.scale is not None:
                gradient = tf.where(finite, gradient, 0.0)
            # The optimisers of Keras fold the rate into the buffer, which is another thing when it changes.
            buffer = self.momenta[name].handle
            tf.raw_ops.ResourceApplyMomentum(
                var=variable.handle, accum=buffer, lr=rate, grad=gradient, momentum=momentum
            )

    def apply_lars(self, gradients, rate):
        """Scale each layer's gradient by the rate and its LARS trust ratio (You et al. 2017)."""
        trust, decay = self.recipe.trust, self.recipe.weight_decay
        for variable, gradient in zip(self.trained.values(), gradients):
            if optimizer.is_excluded_from_lars(variable.shape.rank):
                yield rate * gradient
                continue
            weight_norm, gradient_norm = tf.norm(variable), tf.norm(gradient)
            ratio = optimizer.lars_trust_ratio(weight_norm, gradient_norm, trust, decay)
            ratio = tf.where((weight_norm > 0) & (gradient_norm > 0), ratio, 1.0)
            yield rate * ratio * (gradient + decay * variable)

    def count(self, images, labels):
        """Count how many are correct, and correct within five, by the running statistics."""
        best = tf.math.top_k(self.logits(images, training=False), 5).indices
        correct = tf.cast(best, labels.dtype) == labels[:, None]
        return tf.stack([tf.math.count_nonzero(correct[:, 0]), tf.math.count_nonzero(correct)])


def smoothed_cross_entropy(logits, labels, smoothing):
    """Mean over the batch; the target is the label, mixed with the uniform distribution over all classes."""
    rest = smoothing / recipe.CLASSES
    target = tf.one_hot(labels, recipe.CLASSES, 1 - smoothing + rest, rest)
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(target, logits))


# Main


class Training(data.ImageTraining, framework.Training):
    """The verbs of the loop; see `common/training.py`."""

    def __init__(self, opt):
        super().__init__(opt)
        with self.strategy.scope():
            self.update = Step(opt, build_model(opt))
        self.run_step = self.replicated(self.update)
        self.count = self.replicated(self.update.count)

    def place(self, images, labels):
        return place(self.opt, images, labels)

    def feed(self, loaded):
        return normalise(self.opt, loaded)

    def step(self, images, labels, rate, lam=1.0):
        return self.run_step(images, labels, framework.scalar(rate), framework.scalar(lam))

    def evaluate(self, images, labels):
        return self.count(images, labels).numpy

    def parameters(self):
        return sum(variable.shape.num_elements() for variable in self.update.model.trainable_variables)

    def load(self, values, momenta=None, rest=None):
        for name, variable in named_variables(self.update.model).items():
            variable.assign(dialect(values[name]))
        for name, momentum in self.update.momenta.items():
            momentum.assign(dialect(momenta[name]) if momenta else tf.zeros_like(momentum))
        if self.update.scale is not None:
            self.update.scale.load(rest or {})

    def tensors(self):
        return on_host(named_variables(self.update.model))

    def momenta(self):
        return on_host(self.update.momenta)

    def rest(self):
        return {} if self.update.scale is None else self.update.scale.rest()


def on_host(named):
    return {name: canonical(variable.numpy()) for name, variable in named.items()}


if __name__ == "__main__":
    program.main(framework, Training)
