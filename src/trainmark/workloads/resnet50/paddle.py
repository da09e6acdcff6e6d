"""ResNet-50 v1.5 in Paddle: the model, the data, the step, main."""

import numpy as np
import paddle
from paddle import nn
from paddle.static import default_main_program

from trainmark.workloads.common import optimizer
from trainmark.workloads.common.frameworks import paddle as framework  # sets what Paddle's import reads
from trainmark.workloads.images import sampling
from trainmark.workloads.resnet50.shared import data, program, recipe, tensors

# The model


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
        if recipe.has_shortcut(inputs, width, stride):
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
        self.blocks = nn.Sequential(*(Bottleneck(*block, layout) for block in recipe.bottlenecks()))
        normal, zeros = nn.initializer.KaimingNormal(nonlinearity="linear"), nn.initializer.Constant(0.0)
        features = recipe.features()
        self.classifier = nn.Linear(features, recipe.CLASSES, weight_attr=normal, bias_attr=zeros)

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
        named.update(zip(tensors.tensor_names(layer), module.parameters()))
    return named


def turned(name, value):
    """The classifier's weight is (features, classes) here; turning it twice gives it back."""
    return value.T if name == "classifier.weight" else value


# isort: split


def build_model(opt):
    paddle.seed(opt.seed)  # the same weights on every rank
    model = paddle.jit.to_static(ResNet50(opt.layout), backend="CINN" if opt.compile else None)
    # It averages gradients only; batch-norm statistics stay each rank's own.
    return paddle.DataParallel(model) if opt.world_size > 1 else model


# The data


def normalise(opt, loaded):
    """Copy a loader's batches to the device; there, and not before, pixels become float32."""
    to_nchw = opt.layout == "NCHW"
    moments = sampling.MEAN, sampling.DEVIATION
    mean, deviation = (paddle.to_tensor(part).reshape([3, 1, 1] if to_nchw else [3]) for part in moments)
    for images, labels in framework.loaded(loaded, opt):
        images = images.transpose([0, 3, 1, 2]) if to_nchw else images
        yield (images.astype("float32") - mean) / deviation, labels


# The step


class Step:
    """Forward, backward and update of one batch; the loss stays on the device."""

    def __init__(self, opt, model):
        self.model = model
        self.recipe = opt.recipe
        self.criterion = nn.CrossEntropyLoss(label_smoothing=opt.recipe.label_smoothing)
        self.rate, self.lam = 0.0, paddle.ones([])
        self.is_lars = opt.recipe.optimizer == "lars"
        norms, others = [], []
        for layer in model.sublayers():
            group = norms if isinstance(layer, nn.BatchNorm2D) else others
            group.extend(filter(is_trained, layer.parameters(include_sublayers=False)))
        self.optimizer = paddle.optimizer.Momentum(
            learning_rate=1.0 if self.is_lars else self.rate,
            momentum=opt.recipe.momentum,
            parameters=[{"params": norms, "weight_decay": 0.0}, {"params": others}],
            weight_decay=0.0 if self.is_lars else opt.recipe.weight_decay,
            use_multi_tensor=True,  # all of a group in one call
        )
        # Left to itself the optimiser has no velocities before the first step, and none could be loaded.
        self.optimizer._create_accumulators(default_main_program().global_block(), norms + others)
        self.autocast = framework.make_autocast(opt)
        self.scaler = framework.LossScale(opt)

    def __call__(self, images, labels):
        self.optimizer.clear_grad(set_to_zero=False)
        with self.autocast():
            loss = self.mixup_loss(images, labels) if self.recipe.mixup else self.loss(images, labels)
        self.scaler.scale(loss).backward()
        if self.is_lars:
            self.scaler.unscale_(self.optimizer)
            self.apply_lars()
        else:
            self.optimizer.set_lr(self.rate)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    def loss(self, images, labels):
        return self.criterion(self.model(images), labels)

    def mixup_loss(self, images, labels):
        """Return the cross-entropy of a mixup batch (Zhang et al. 2018)."""
        logits = self.model(optimizer.mixup(images, images.flip(0), self.lam))
        return optimizer.mixup(
            self.criterion(logits, labels), self.criterion(logits, labels.flip(0)), self.lam
        )

    @paddle.no_grad()
    def apply_lars(self):
        """Scale each layer's gradient by the rate and its LARS trust ratio (You et al. 2017)."""
        trust, decay = self.recipe.trust, self.recipe.weight_decay
        for parameter in filter(is_trained, self.model.parameters()):
            gradient = parameter.grad
            if optimizer.is_excluded_from_lars(parameter.ndim):
                gradient.scale_(self.rate)
                continue
            weight_norm, gradient_norm = parameter.norm(), gradient.norm()
            ratio = optimizer.lars_trust_ratio(weight_norm, gradient_norm, trust, decay)
            both_positive = (weight_norm > 0) & (gradient_norm > 0)
            ratio = paddle.where(both_positive, ratio, paddle.ones_like(ratio))
            gradient.add_(decay * parameter).multiply_(self.rate * ratio)

    def velocities(self):
        """Of every trained tensor by its canonical name."""
        known = self.optimizer._accumulators["velocity"]
        for name, tensor in named_tensors(self.model).items():
            if not tensors.is_statistic(name):
                yield name, known[tensor.name]


def is_trained(parameter):
    return not parameter.stop_gradient  # running statistics are parameters too


# Main


class Training(data.ImageTraining, framework.Training):
    """The verbs of the loop; see `common/training.py`."""

    def __init__(self, opt):
        super().__init__(opt)
        model = build_model(opt)
        self.plain = next(
            layer for layer in model.sublayers(include_self=True) if isinstance(layer, ResNet50)
        )
        self.update = Step(opt, model)

    def arranged(self, images, labels):
        if self.opt.layout == "NHWC":
            images = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
        return images, labels

    def feed(self, loaded):
        return normalise(self.opt, loaded)

    def step(self, images, labels, rate, lam=1.0):
        self.update.rate = rate
        self.update.lam.fill_(lam)
        return self.update(images, labels)

    @paddle.no_grad()
    def evaluate(self, images, labels):
        self.plain.eval()
        with self.update.autocast():
            best = self.plain(images).topk(5)[1]
        self.plain.train()
        correct = (best == labels.unsqueeze(1)).astype("int64")
        return paddle.stack([correct[:, 0].sum(), correct.sum()]).tolist

    def parameters(self):
        return sum(parameter.size for parameter in self.update.model.parameters() if is_trained(parameter))

    def load(self, values, momenta=None, rest=None):
        for name, tensor in named_tensors(self.plain).items():
            tensor.set_value(np.ascontiguousarray(turned(name, values[name])))
        for name, velocity in self.update.velocities():
            if momenta:
                velocity.set_value(np.ascontiguousarray(turned(name, momenta[name])))
            else:
                velocity.zero_()
        if rest:
            self.update.scaler.load_numbers(rest)

    def tensors(self):
        return on_host(named_tensors(self.plain).items())

    def momenta(self):
        return on_host(self.update.velocities())

    def rest(self):
        return self.update.scaler.numbers()


def on_host(named):
    return {name: turned(name, tensor.numpy()) for name, tensor in named}


if __name__ == "__main__":
    program.main(framework, Training)
