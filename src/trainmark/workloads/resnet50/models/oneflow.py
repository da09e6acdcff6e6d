"""ResNet-50 v1.5 in OneFlow."""

from oneflow import nn

from trainmark.workloads.resnet50.shared import recipe, tensors


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = width * recipe.EXPANSION
        self.conv1, self.bn1 = conv(inputs, width, 1), batch_norm(width)
        self.conv2, self.bn2 = conv(width, width, 3, stride), batch_norm(width)  # v1.5: the stride is here
        self.conv3, self.bn3 = conv(width, outputs, 1), batch_norm(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(conv(inputs, outputs, 1, stride), batch_norm(outputs))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


class ResNet50(nn.Module):
    def __init__(self, layout):
        super().__init__()
        self.pixels = (2, 3) if layout == "NCHW" else (1, 2)
        self.stem = nn.Sequential(
            conv(3, 64, 7, 2), batch_norm(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, stride=2, padding=1)
        )
        blocks, channels = [], 64
        for stage, (depth, width) in enumerate(recipe.STAGES):
            for block in range(depth):
                blocks.append(Bottleneck(channels, width, stride=2 if block == 0 and stage > 0 else 1))
                channels = width * recipe.EXPANSION
        self.blocks = nn.Sequential(*blocks)
        self.classifier = nn.Linear(channels, recipe.CLASSES)
        nn.init.kaiming_normal_(self.classifier.weight, mode="fan_in", nonlinearity="linear")
        nn.init.zeros_(self.classifier.bias)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.classifier(x.mean(dim=self.pixels))


def conv(inputs, outputs, kernel, stride=1):
    layer = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_in", nonlinearity="relu")
    return layer


def batch_norm(channels):
    return nn.BatchNorm2d(channels, eps=recipe.BATCH_NORM_EPSILON, momentum=recipe.BATCH_NORM_MOMENTUM)


def named_tensors(model):
    """This rank's own of every tensor by its canonical name; modules come in the order of the layers."""
    kinds = (nn.Conv2d, nn.BatchNorm2d, nn.Linear)
    named = {}
    for layer, module in zip(tensors.layers(), (m for m in model.modules() if isinstance(m, kinds))):
        if layer.kind == "norm":
            parts = module.weight, module.bias, module.running_mean, module.running_var
        else:
            parts = module.parameters()
        named.update(zip(tensors.names(layer), (part.to_local() for part in parts)))
    return named
