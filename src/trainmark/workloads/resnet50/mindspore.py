"""ResNet-50 v1.5 in MindSpore: the model, the data, the step, main."""

import mindspore as ms
import numpy as np
from mindspore import amp, nn, ops
from mindspore.common.initializer import HeNormal

from trainmark.workloads.common.frameworks import mindspore as framework  # sets what MindSpore's import reads
from trainmark.workloads.common.optimizer import is_excluded_from_lars, lars_trust_ratio, mixup
from trainmark.workloads.images import sampling
from trainmark.workloads.resnet50.shared import data, program, recipe, tensors

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
        if recipe.has_shortcut(inputs, width, stride):
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
        self.blocks = nn.SequentialCell(*(Bottleneck(*block) for block in recipe.bottlenecks()))
        he_normal = HeNormal(nonlinearity="linear")
        self.classifier = nn.Dense(
            recipe.features(), recipe.CLASSES, weight_init=he_normal, bias_init="zeros"
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
        named.update(zip(tensors.tensor_names(layer), parts))
    return named


# isort: split


def build_model(opt):
    ms.set_seed(opt.seed)  # the same weights on every rank
    model = ResNet50().set_train()
    if opt.precision == "amp":
        for _, cell in model.cells_and_names():
            if isinstance(cell, (nn.Conv2d, nn.Dense)):
                cell.to_float(ms.float16)  # the weights stay in float32
    return model


# The data


def place(images, labels):
    """Make tensors of host arrays, images as NCHW; they go to the device with the step that takes them."""
    return ms.from_numpy(images), ms.from_numpy(labels.astype(np.int32))


def normalise(loaded):
    """Copy a loader's batches to the device; there, and not before, pixels become float32."""
    moments = sampling.MEAN, sampling.DEVIATION
    mean, deviation = (ms.Tensor(part, ms.float32).view(3, 1, 1) for part in moments)
    for pixels, labels in loaded:
        # Copied: MindSpore would share the memory that the loader soon writes anew.
        images, labels = place(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)), labels)
        yield (images.astype(ms.float32) - mean) / deviation, labels


# The step


class Step(nn.Cell):
    """Forward, backward and update of one batch, compiled into one graph."""

    def __init__(self, opt, model):
        super().__init__()
        self.model = model
        self.criterion = nn.CrossEntropyLoss(label_smoothing=opt.recipe.label_smoothing)
        self.has_mixup, self.is_lars = bool(opt.recipe.mixup), opt.recipe.optimizer == "lars"
        self.trust, self.decay = opt.recipe.trust, opt.recipe.weight_decay
        norms, others = [], []
        for _, cell in model.cells_and_names():
            group = norms if isinstance(cell, nn.BatchNorm2d) else others
            group.extend(filter(is_trained, cell.get_parameters(expand=False)))
        self.optimizer = nn.Momentum(
            [{"params": norms, "weight_decay": 0.0}, {"params": others}],
            learning_rate=1.0 if self.is_lars else 0.0,
            momentum=opt.recipe.momentum,
            weight_decay=0.0 if self.is_lars else opt.recipe.weight_decay,
        )
        trained = self.optimizer.parameters
        self.backward = ms.value_and_grad(self.forward, None, trained, has_aux=True)
        self.average = nn.Identity()
        if opt.world_size > 1:
            self.average = nn.DistributedGradReducer(trained, mean=True, degree=opt.world_size)
        self.scaler = framework.loss_scaler(opt)

    def forward(self, images, labels, lam):
        loss = self.mixup_loss(images, labels, lam) if self.has_mixup else self.loss(images, labels)
        return loss if self.scaler is None else self.scaler.scale(loss), loss

    def loss(self, images, labels):
        return self.criterion(self.model(images).astype(ms.float32), labels)

    def mixup_loss(self, images, labels, lam):
        """Return the cross-entropy of a mixup batch (Zhang et al. 2018)."""
        logits = self.model(mixup(images, images.flip((0,)), lam)).astype(ms.float32)
        return mixup(self.criterion(logits, labels), self.criterion(logits, labels.flip((0,))), lam)

    def construct(self, images, labels, rate, lam):
        if not self.is_lars:
            ops.assign(self.optimizer.learning_rate, rate)
        (_, loss), gradients = self.backward(images, labels, lam)
        gradients = self.average(gradients)
        if self.scaler is None:
            self.apply_gradients(gradients, rate)
        else:
            gradients = self.scaler.unscale(gradients)
            finite = amp.all_finite(gradients)
            if finite:
                self.apply_gradients(gradients, rate)
            self.scaler.adjust(finite)
        return loss

    def apply_gradients(self, gradients, rate):
        self.optimizer(self.apply_lars(gradients, rate) if self.is_lars else gradients)

    def apply_lars(self, gradients, rate):
        """Scale each layer's gradient by the rate and its LARS trust ratio (You et al. 2017)."""
        steps = ()
        for parameter, gradient in zip(self.optimizer.parameters, gradients):
            if is_excluded_from_lars(parameter.ndim):
                steps += (rate * gradient,)
            else:
                weight_norm, gradient_norm = ops.norm(parameter), ops.norm(gradient)
                ratio = lars_trust_ratio(weight_norm, gradient_norm, self.trust, self.decay)
                both_positive = ops.logical_and(weight_norm > 0, gradient_norm > 0)
                ratio = ops.where(both_positive, ratio, ops.ones_like(ratio))
                steps += (rate * ratio * (gradient + self.decay * parameter),)
        return steps


class Evaluation(nn.Cell):
    """Count of how many of a batch are correct, and correct within five, compiled into one graph."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def construct(self, images, labels):
        best = ops.topk(self.model(images), 5)[1]
        correct = (best == labels.expand_dims(1)).astype(ms.int32)
        return ops.stack([correct[:, 0].sum(), correct.sum()])


def is_trained(parameter):
    return parameter.requires_grad  # running statistics are parameters too


# Main


class Training(data.ImageTraining, framework.Training):
    """The verbs of the loop; see `common/training.py`."""

    def __init__(self, opt):
        super().__init__(opt)
        model = build_model(opt)
        self.update, self.evaluation = Step(opt, model), Evaluation(model)

    def place(self, images, labels):
        return place(images, labels)

    def feed(self, loaded):
        return normalise(loaded)

    def place_own(self, images, labels):
        return place(images, labels)

    def step(self, images, labels, rate, lam=1.0):
        # Plain numbers would be compiled in.
        return self.update(images, labels, ms.Tensor(rate, ms.float32), ms.Tensor(lam, ms.float32))

    def evaluate(self, images, labels):
        self.evaluation.set_train(False)
        counts = self.evaluation(images, labels)
        self.evaluation.set_train(True)
        return lambda: counts.asnumpy().tolist()

    def parameters(self):
        return sum(parameter.size for parameter in self.update.model.trainable_params())

    def load(self, values, momenta=None, rest=None):
        # Assigned: set_data is not seen inside a condition.
        for name, parameter in named_tensors(self.update.model).items():
            ops.assign(parameter, ms.Tensor(values[name]))
        for name, moment in self.moments():
            ops.assign(moment, ms.Tensor(momenta[name]) if momenta else ops.zeros_like(moment))
        for name, state in self.scaler_state() if rest else ():
            ops.assign(state, ms.Tensor(rest[name], state.dtype))

    def tensors(self):
        return framework.on_host(named_tensors(self.update.model).items())

    def momenta(self):
        return framework.on_host(self.moments())

    def moments(self):
        optimizer = self.update.optimizer
        known = {parameter.name: moment for parameter, moment in zip(optimizer.parameters, optimizer.moments)}
        for name, parameter in named_tensors(self.update.model).items():
            if not tensors.is_statistic(name):
                yield name, known[parameter.name]

    def rest(self):
        return framework.on_host_numbers(self.scaler_state())

    def scaler_state(self):
        return framework.scaler_state(self.update.scaler)


if __name__ == "__main__":
    program.main(framework, Training)
