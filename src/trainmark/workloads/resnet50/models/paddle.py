"""ResNet-50 v1.5 in Paddle."""

from paddle import nn

from trainmark.workloads.resnet50.shared import recipe, tensors


class Bottleneck(nn.Layer):
    def __init__(self, inputs, width, stride, layout):
        super().__init__()
        outputs = width * recipe.EXPANSION
        self.conv1, self.bn1 = conv(inputs, width, 1, 1, layout), batch_norm(width, layout)
        # v1.5: the stride is here.
        self.conv2, self.bn2 = conv(width, width, 3, stride, layout), batch_norm(width, layout)
        self.conv3, self.bn3 = conv(width, outputs, 1, 1, layout), batch_norm(outputs, layout)
        self.relu = nn.ReLU()
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                conv(inputs, outputs, 1, stride, layout), batch_norm(outputs, layout)
            )

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


class ResNet50(nn.Layer):
    def __init__(self, layout):
        super().__init__()
        self.pixels = (2, 3) if layout == "NCHW" else (1, 2)
        self.stem = nn.Sequential(
            conv(3, 64, 7, 2, layout),
            batch_norm(64, layout),
            nn.ReLU(),
            nn.MaxPool2D(3, stride=2, padding=1, data_format=layout),
        )
        blocks, channels = [], 64
        for stage, (depth, width) in enumerate(recipe.STAGES):
            for block in range(depth):
                stride = 2 if block == 0 and stage > 0 else 1
                blocks.append(Bottleneck(channels, width, stride, layout))
                channels = width * recipe.EXPANSION
        self.blocks = nn.Sequential(*blocks)
        normal, zeros = nn.initializer.KaimingNormal(nonlinearity="linear"), nn.initializer.Constant(0.0)
        self.classifier = nn.Linear(channels, recipe.CLASSES, weight_attr=normal, bias_attr=zeros)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.classifier(x.mean(axis=self.pixels))


def conv(inputs, outputs, kernel, stride, layout):
    he_normal = nn.initializer.KaimingNormal(nonlinearity="relu")
    padding = kernel // 2
    return nn.Conv2D(
        inputs, outputs, kernel, stride, padding, weight_attr=he_normal, bias_attr=False, data_format=layout
    )


def batch_norm(channels, layout):
    old_share = 1 - recipe.BATCH_NORM_MOMENTUM  # which is momentum to Paddle
    return nn.BatchNorm2D(channels, old_share, recipe.BATCH_NORM_EPSILON, data_format=layout)


def named_tensors(model):
    """Every tensor by its canonical name; layers come in the canonical order, running statistics last."""
    kinds = (nn.Conv2D, nn.BatchNorm2D, nn.Linear)
    named = {}
    for layer, module in zip(tensors.layers(), (m for m in model.sublayers() if isinstance(m, kinds))):
        named.update(zip(tensors.names(layer), module.parameters()))
    return named


def turned(name, value):
    """The classifier's weight is (features, classes) here; turning it twice gives it back."""
    return value.T if name == "classifier.weight" else value
