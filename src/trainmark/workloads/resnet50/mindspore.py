"""ResNet-50 v1.5 in MindSpore: the model, the data, the step, main."""

import itertools
import os

os.environ.setdefault("GLOG_v", "3")  # errors only; read when MindSpore is imported

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.common.initializer import HeNormal

from trainmark import probe
from trainmark.workloads.resnet50.shared import loop, options, recipe, synthetic, tensors

# The model


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
    return nn.Conv2d(
        inputs,
        outputs,
        kernel,
        stride,
        pad_mode="pad",
        padding=kernel // 2,
        weight_init=HeNormal(nonlinearity="relu"),
    )


def batch_norm(channels):
    # Here momentum is the share that the running statistics keep.
    return nn.BatchNorm2d(channels, recipe.BATCH_NORM_EPSILON, momentum=1 - recipe.BATCH_NORM_MOMENTUM)


def named_tensors(model):
    """Every tensor by its canonical name; cells come in the order of the canonical layers."""
    kinds = (nn.Conv2d, nn.BatchNorm2d, nn.Dense)
    found = {}
    cells = (cell for _, cell in model.cells_and_names() if isinstance(cell, kinds))
    for layer, cell in zip(tensors.layers(), cells):
        if layer.kind == "norm":
            parts = cell.gamma, cell.beta, cell.moving_mean, cell.moving_variance
        else:
            parts = cell.get_parameters()
        found.update(zip(tensors.names(layer), parts))
    return found


# The data


def batches(opt):
    if opt.data == "synthetic":
        return itertools.repeat(place(*synthetic.batches(opt, 1)[0]))
    return (place(*batch) for batch in itertools.cycle(synthetic.batches(opt, synthetic.BATCHES)))


def place(images, labels):
    return ms.Tensor(images), ms.Tensor(labels.astype(np.int32))


# The step


class Update(nn.Cell):
    def __init__(self, network, optimizer):
        super().__init__()
        self.network, self.optimizer = network, optimizer
        self.criterion = nn.CrossEntropyLoss(label_smoothing=recipe.LABEL_SMOOTHING)
        self.loss_and_gradients = ms.value_and_grad(self.loss, None, optimizer.parameters)

    def loss(self, images, labels):
        return self.criterion(self.network(images), labels)

    def construct(self, images, labels):
        loss, gradients = self.loss_and_gradients(images, labels)
        return ops.depend(loss, self.optimizer(gradients))


class Training:
    def __init__(self, opt):
        self.opt = opt
        ms.set_context(mode=ms.GRAPH_MODE)
        ms.set_device("CPU")
        ms.set_seed(opt.seed)
        self.network = ResNet50().set_train()
        norms, others = [], []
        for parameter in self.network.trainable_params():
            kind = norms if parameter.name.endswith(("gamma", "beta")) else others
            kind.append(parameter)
        self.optimizer = nn.Momentum(
            [{"params": norms, "weight_decay": 0.0}, {"params": others}],
            learning_rate=0.0,
            momentum=recipe.MOMENTUM,
            weight_decay=recipe.WEIGHT_DECAY,
        )
        self.update = Update(self.network, self.optimizer)

    def batches(self):
        return batches(self.opt)

    def place(self, images, labels):
        return place(images, labels)

    def step(self, images, labels, rate):
        self.optimizer.learning_rate.set_data(ms.Tensor(rate, ms.float32))
        return self.update(images, labels)

    def read(self, loss):
        return loss.item

    def load(self, values):
        for name, parameter in named_tensors(self.network).items():
            parameter.set_data(ms.Tensor(values[name]))
        for moment in self.optimizer.moments:
            moment.set_data(ms.Tensor(np.zeros(moment.shape, np.float32)))

    def tensors(self):
        return {name: p.asnumpy().copy() for name, p in named_tensors(self.network).items()}

    def clock(self):
        return None

    def memory(self):
        return options.process_memory_peak()

    def device_name(self):
        return "cpu"

    def peak_flops(self):
        side = 1024
        a, b = (ms.Tensor(np.random.standard_normal((side, side)).astype(np.float32)) for _ in range(2))
        return loop.peak_flops(lambda: ops.matmul(a, b).asnumpy(), side, probe.HostClock())

    def close(self):
        pass


# Main


def check(opt):
    pass


def facts():
    return {"framework_version": ms.__version__}


if __name__ == "__main__":
    loop.main("mindspore", Training, check, facts)
