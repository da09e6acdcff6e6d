"""ResNet-50 v1.5 in TensorFlow."""

from typing import NamedTuple

import tensorflow as tf

from trainmark.workloads.common.frameworks.tensorflow import own
from trainmark.workloads.resnet50.shared import recipe, tensors


class Bottleneck(tf.Module):
    def __init__(self, inputs, width, stride, layout):
        super().__init__()
        outputs = width * recipe.EXPANSION
        self.conv1, self.bn1 = Conv(inputs, width, 1, 1, layout), BatchNorm(width, layout)
        # v1.5: the stride is in the second.
        self.conv2, self.bn2 = Conv(width, width, 3, stride, layout), BatchNorm(width, layout)
        self.conv3, self.bn3 = Conv(width, outputs, 1, 1, layout), BatchNorm(outputs, layout)
        self.shortcut = []
        if stride != 1 or inputs != outputs:
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
        self.blocks, channels = [], 64
        for stage, (depth, width) in enumerate(recipe.STAGES):
            for block in range(depth):
                stride = 2 if block == 0 and stage > 0 else 1
                self.blocks.append(Bottleneck(channels, width, stride, layout))
                channels = width * recipe.EXPANSION
        self.classifier = Linear(channels, recipe.CLASSES)
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
        named.update(zip(tensors.names(layer), parts))
    return named


def canonical(value):
    """An array in the canonical layout: outputs first, where TensorFlow has them last."""
    return value.transpose({1: (0,), 2: (1, 0), 4: (3, 2, 0, 1)}[value.ndim])


def dialect(value):
    """The reverse."""
    return value.transpose({1: (0,), 2: (1, 0), 4: (2, 3, 1, 0)}[value.ndim])
