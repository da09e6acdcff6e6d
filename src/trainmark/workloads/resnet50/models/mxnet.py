"""ResNet-50 v1.5 in MXNet (Gluon)."""

import mxnet as mx
from mxnet.gluon import nn

from trainmark.workloads.resnet50.shared import recipe, tensors


class Bottleneck(nn.HybridBlock):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = width * recipe.EXPANSION
        self.conv1, self.bn1 = conv(inputs, width, 1), batch_norm(width)
        self.conv2, self.bn2 = conv(width, width, 3, stride), batch_norm(width)  # v1.5: the stride is here
        self.conv3, self.bn3 = conv(width, outputs, 1), batch_norm(outputs)
        self.relu = nn.Activation("relu")
        self.shortcut = nn.HybridSequential()
        if stride != 1 or inputs != outputs:
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
        self.blocks, channels = nn.HybridSequential(), 64
        for stage, (depth, width) in enumerate(recipe.STAGES):
            for block in range(depth):
                self.blocks.add(Bottleneck(channels, width, stride=2 if block == 0 and stage > 0 else 1))
                channels = width * recipe.EXPANSION
        self.pool = nn.GlobalAvgPool2D()
        normal = mx.init.Xavier("gaussian", factor_type="in", magnitude=1)
        self.classifier = nn.Dense(recipe.CLASSES, in_units=channels, weight_initializer=normal)

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
        named.update(zip(tensors.names(layer), parts))
    return named
