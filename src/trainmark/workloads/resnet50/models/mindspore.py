"""ResNet-50 v1.5 in MindSpore."""

from mindspore import nn
from mindspore.common.initializer import HeNormal

from trainmark.workloads.resnet50.shared import recipe, tensors


class Bottleneck(nn.Cell):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = width * recipe.EXPANSION
        self.conv1, self.bn1 = conv(inputs, width, 1), batch_norm(width)
        self.conv2, self.bn2 = conv(width, width, 3, stride), batch_norm(width)  # v1.5: the stride is here
        self.conv3, self.bn3 = conv(width, outputs, 1), batch_norm(outputs)
        self.relu = nn.ReLU()
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.SequentialCell(conv(inputs, outputs, 1, stride), batch_norm(outputs))

    def construct(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


class ResNet50(nn.Cell):
    def __init__(self):
        super().__init__()
        self.stem = nn.SequentialCell(
            conv(3, 64, 7, 2), batch_norm(64), nn.ReLU(), nn.MaxPool2d(3, stride=2, pad_mode="pad", padding=1)
        )
        blocks, channels = [], 64
        for stage, (depth, width) in enumerate(recipe.STAGES):
            for block in range(depth):
                blocks.append(Bottleneck(channels, width, stride=2 if block == 0 and stage > 0 else 1))
                channels = width * recipe.EXPANSION
        self.blocks = nn.SequentialCell(*blocks)
        self.classifier = nn.Dense(
            channels, recipe.CLASSES, weight_init=HeNormal(nonlinearity="linear"), bias_init="zeros"
        )

    def construct(self, x):
        x = self.blocks(self.stem(x))
        return self.classifier(x.mean((2, 3)))


def conv(inputs, outputs, kernel, stride=1):
    he_normal, padding = HeNormal(nonlinearity="relu"), kernel // 2
    return nn.Conv2d(inputs, outputs, kernel, stride, pad_mode="pad", padding=padding, weight_init=he_normal)


def batch_norm(channels):
    # Here momentum is the share that the running statistics keep.
    return nn.BatchNorm2d(channels, recipe.BATCH_NORM_EPSILON, momentum=1 - recipe.BATCH_NORM_MOMENTUM)


def named_tensors(model):
    """Every tensor by its canonical name; cells come in the order of the canonical layers."""
    kinds = (nn.Conv2d, nn.BatchNorm2d, nn.Dense)
    named = {}
    cells = (cell for _, cell in model.cells_and_names() if isinstance(cell, kinds))
    for layer, cell in zip(tensors.layers(), cells):
        if layer.kind == "norm":
            parts = cell.gamma, cell.beta, cell.moving_mean, cell.moving_variance
        else:
            parts = cell.get_parameters()
        named.update(zip(tensors.names(layer), parts))
    return named
