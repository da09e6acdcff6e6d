"""ResNet-50 v1.5 in OneFlow: the model, the data, the step, main."""

import itertools
import os

import oneflow as flow
from oneflow import nn

from trainmark.workloads.common import optimizer
from trainmark.workloads.common.frameworks import oneflow as framework  # joins the ranks, before all else
from trainmark.workloads.images import sampling
from trainmark.workloads.resnet50.shared import data, program, recipe, tensors

# The model


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = width * recipe.EXPANSION
        self.conv1, self.bn1 = conv(inputs, width, 1), batch_norm(width)
        self.conv2, self.bn2 = conv(width, width, 3, stride), batch_norm(width)  # v1.5: the stride is here
        self.conv3, self.bn3 = conv(width, outputs, 1), batch_norm(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Identity()
        if recipe.has_shortcut(inputs, width, stride):
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
        self.blocks = nn.Sequential(*(Bottleneck(*block) for block in recipe.bottlenecks()))
        self.classifier = nn.Linear(recipe.features(), recipe.CLASSES)
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
        named.update(zip(tensors.tensor_names(layer), (part.to_local() for part in parts)))
    return named


# isort: split


def build_model(opt):
    """The same weights on every rank, each with batch-norm statistics of its own."""
    os.environ["ONEFLOW_ENABLE_NHWC"] = "1" if opt.layout == "NHWC" else "0"  # read by every layer when built
    flow.manual_seed(opt.seed)
    return ResNet50(opt.layout).to_global(**framework.everywhere(opt))


# The data


def place(opt, device, images, labels):
    """Make host arrays, images as NCHW, this rank's part of a batch that is split over all ranks."""
    arrays = (images.transpose(0, 2, 3, 1) if opt.layout == "NHWC" else images), labels
    return split_global(flow.tensor(array).to(device) for array in arrays)


def split_global(own):
    """Make this rank's own tensors parts of global ones that are split over all ranks."""
    return tuple(part.to_global(flow.placement.all(part.device.type), flow.sbp.split(0)) for part in own)


def normalise(opt, loaded):
    """Copy a loader's batches to the device; there, and not before, pixels become float32."""
    to_nchw = opt.layout == "NCHW"
    shape, moments = (3, 1, 1) if to_nchw else (3,), (sampling.MEAN, sampling.DEVIATION)
    mean, deviation = (flow.tensor(part).to(opt.device).view(*shape) for part in moments)
    for batch in loaded:
        images, labels = (flow.tensor(part).to(opt.device) for part in batch)
        images = images.permute(0, 3, 1, 2) if to_nchw else images
        yield split_global([(images.to(flow.float32) - mean) / deviation, labels])


# The step


class Lars(flow.optim.SGD):
    """LARS (You et al. 2017), of which OneFlow has the update alone."""

    def __init__(self, weights, others, recipe):
        super().__init__([{"params": others}, {"params": weights}], lr=1.0, momentum=recipe.momentum)
        self.recipe = recipe

    def _generate_conf_for_graph(self, train_conf, vars_conf):
        others, weights = super()._generate_conf_for_graph(train_conf, vars_conf)
        weights.weight_decay_conf.weight_decay_rate = self.recipe.weight_decay
        weights.lars_conf.momentum_beta = self.recipe.momentum
        weights.lars_conf.epsilon = 0.0
        weights.lars_conf.lars_coefficient = self.recipe.trust
        return [others, weights]


class StepGraph(nn.Graph):
    """Forward, backward and update of one batch as a static graph; gives the loss of every image."""

    def __init__(self, opt, model):
        super().__init__()
        self.device = opt.device
        self.model = model
        self.criterion = nn.CrossEntropyLoss(reduction="none", label_smoothing=opt.recipe.label_smoothing)
        self.has_mixup, self.is_lars = bool(opt.recipe.mixup), opt.recipe.optimizer == "lars"
        self.add_optimizer(lars_optimizer(opt, model) if self.is_lars else sgd_optimizer(opt, model))
        self.config.allow_fuse_add_to_output(True)
        self.config.allow_fuse_cast_scale(True)
        self.config.allow_fuse_model_update_ops(not self.is_lars)  # it would take what the rate goes in by
        self.config.enable_cudnn_conv_heuristic_search_algo(False)  # tries them all, and takes the fastest
        if opt.precision == "amp":
            self.config.enable_amp(True)
            dynamic = opt.loss_scale == "dynamic"
            self.set_grad_scaler(
                flow.amp.GradScaler() if dynamic else flow.amp.StaticGradScaler(opt.loss_scale)
            )

    def build(self, images, labels, *more):
        *mixing, _ = more  # the rate comes last, see below
        losses = self.mixup_loss(images, labels, *mixing) if self.has_mixup else self.loss(images, labels)
        losses.mean().backward()
        return losses

    def loss(self, images, labels):
        return self.criterion(self.model(images.to(self.device)), labels.to(self.device))

    def mixup_loss(self, images, labels, others, lam):
        """Return the cross-entropy of a mixup batch (Zhang et al. 2018), whose images are mixed already."""
        logits = self.model(images.to(self.device))
        own, other = (self.criterion(logits, target.to(self.device)) for target in (labels, others))
        return optimizer.mixup(own, other, lam)

    def compile_with_rate(self, *inputs):
        """The update of a graph takes its rate from a fixed schedule; here from the graph's last input."""
        self.build_graph(*inputs)
        job = self._full_graph_proto
        rate = [op.name for op in job.net.op if op.HasField("input_conf")][-1]
        for op in job.net.op:
            if "learning_rate" in op.user_conf.input:
                if self.is_lars and op.user_conf.op_type_name == "momentum_update":
                    scale_gradient(job, op, rate + "/out")  # the schedule's rate is 1 there
                else:
                    op.user_conf.input["learning_rate"].s[:] = [rate + "/out"]
        self._full_graph_proto = job
        self.finish_complie_and_init_runtime()


def scale_gradient(job, op, scale):
    """The update of a compiled job takes its gradient times `scale`, which is the same on every rank."""
    op.user_conf.input["scale_by_tensor"].s[:] = [scale]
    op.user_conf.input_order.append("scale_by_tensor")
    view = job.job_parallel_view_conf
    for spread in (
        view.op_name2sbp_signature_conf[op.name].bn_in_op2sbp_parallel,
        view.op_name2nd_sbp_signature_conf[op.name].bn_in_op2nd_sbp,
    ):
        spread["scale_by_tensor_0"].CopyFrom(spread["learning_rate_0"])


def sgd_optimizer(opt, model):
    norms, others = [], []
    for module in model.modules():
        group = norms if isinstance(module, nn.BatchNorm2d) else others
        group.extend(module.parameters(recurse=False))
    decayed = {"params": others, "weight_decay": opt.recipe.weight_decay}
    return flow.optim.SGD([{"params": norms}, decayed], momentum=opt.recipe.momentum)


def lars_optimizer(opt, model):
    """Return an optimizer that scales each layer's gradient by its LARS trust ratio (You et al. 2017)."""
    weights, others = [], []
    for parameter in model.parameters():
        (others if optimizer.is_excluded_from_lars(parameter.ndim) else weights).append(parameter)
    return Lars(weights, others, opt.recipe)


class Step:
    """The graph, its rate, and of what it gives the mean loss of this rank; all of it stays on the device."""

    def __init__(self, opt, model):
        self.opt = opt
        self.model = model
        self.rate, self.lam = (flow.zeros(1, **framework.everywhere(opt)) for _ in range(2))
        self.graph = StepGraph(opt, model)

    def __call__(self, images, labels):
        inputs = self.inputs(images, labels)
        if not self.graph.is_compiled:
            self.graph.compile_with_rate(*inputs)
        return self.graph(*inputs).to_local().mean()

    def inputs(self, images, labels):
        if self.opt.recipe.mixup:
            return (*self.mixed(images.to_local(), labels.to_local()), self.lam, self.rate)
        return images, labels, self.rate

    def mixed(self, images, labels):
        """Return a mixup batch (Zhang et al. 2018): the images mixed, with the labels of both."""
        lam = self.lam.to_local().to(images.device)
        return split_global([optimizer.mixup(images, images.flip(0), lam), labels, labels.flip(0)])

    def state(self):
        """What the graph keeps beside the model, by its own names."""
        if not self.graph.is_compiled:
            batch = place(self.opt, self.opt.device, *data.synthetic_batches(self.opt, 1)[0])
            self.graph.compile_with_rate(*self.inputs(*batch))
        beside = (item for item in self.graph.state_dict().items() if isinstance(item[1], flow.Tensor))
        return {name: value.to_local() for name, value in beside}


class EvaluationGraph(nn.Graph):
    """Which of the five best classes of every image is the right one, as a static graph."""

    def __init__(self, opt, model):
        super().__init__()
        self.device = opt.device
        self.model = model
        self.config.enable_amp(opt.precision == "amp")

    def build(self, images, labels):
        best = self.model(images.to(self.device)).topk(5, dim=1)[1]
        return best == labels.to(self.device).unsqueeze(1)


# Main


class Training(data.ImageTraining, framework.Training):
    """The verbs of the loop; see `common/training.py`."""

    def __init__(self, opt):
        super().__init__(opt)
        model = build_model(opt)
        self.update, self.evaluation = Step(opt, model), EvaluationGraph(opt, model)

    def cycled(self, batches):
        # The graph copies them to the device.
        return itertools.cycle([self.place_on("cpu", *batch) for batch in batches])

    def place_on(self, device, images, labels):
        return place(self.opt, device, images, labels)

    def feed(self, loaded):
        return normalise(self.opt, loaded)

    def place_own(self, images, labels):
        return split_global([images.to(self.opt.device), labels.to(self.opt.device, flow.int64)])

    def step(self, images, labels, rate, lam=1.0):
        self.update.rate.to_local().fill_(rate)
        self.update.lam.to_local().fill_(lam)
        return self.update(images, labels)

    def evaluate(self, images, labels):
        self.update.model.eval()  # asked when the graph is built
        correct = self.evaluation(images, labels).to_local().to(flow.int64)
        self.update.model.train()
        return flow.stack([correct[:, 0].sum(), correct.sum()]).tolist

    def parameters(self):
        return sum(parameter.numel() for parameter in self.update.model.parameters())

    def load(self, values, momenta=None, rest=None):
        for name, tensor in named_tensors(self.update.model).items():
            tensor.copy_(flow.tensor(to_layout(self.opt, values[name])))
        if momenta or self.update.graph.is_compiled:
            for name, momentum in self.momentum_buffers():
                if momenta:
                    momentum.copy_(flow.tensor(to_layout(self.opt, momenta[name])))
                else:
                    momentum.zero_()
        for name, state in self.scalars() if rest else ():
            state.fill_(rest[name])

    def tensors(self):
        return on_host(self.opt, named_tensors(self.update.model).items())

    def momenta(self):
        return on_host(self.opt, self.momentum_buffers())

    def momentum_buffers(self):
        """By canonical name; the parameters come in that order."""
        state = self.update.state()
        trained = (name for name in tensors.shapes() if not tensors.is_statistic(name))
        for name, (own_name, _) in zip(trained, self.update.model.named_parameters()):
            yield name, state["model.{}-momentum".format(own_name)]

    def rest(self):
        return {name: float(state.numpy()) for name, state in self.scalars()}

    def scalars(self):
        """The loss scale and the like, which are variables of the graph."""
        return [(name, state) for name, state in self.update.state().items() if state.numel() == 1]


def to_layout(opt, value):
    """A canonical tensor in the layout of the model."""
    return value.transpose(0, 2, 3, 1) if value.ndim == 4 and opt.layout == "NHWC" else value


def on_host(opt, named):
    values = {name: tensor.numpy().copy() for name, tensor in named}
    if opt.layout == "NCHW":
        return values
    return {name: v.transpose(0, 3, 1, 2) if v.ndim == 4 else v for name, v in values.items()}


if __name__ == "__main__":
    program.main(framework, Training)
