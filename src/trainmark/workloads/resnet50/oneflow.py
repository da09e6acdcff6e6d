"""Training ResNet-50 v1.5 in OneFlow: the model, the data, the step, main."""

import itertools
import os

from trainmark.workloads.resnet50.shared.own_address import Doorkeeper

RANK = os.environ.get("RANK", "0")

with Doorkeeper():  # the import joins the ranks
    import oneflow as flow  # where nothing launched it, it sets RANK to -1
from oneflow import nn, sysconfig  # noqa: E402
from oneflow.framework import session_context  # noqa: E402

from trainmark import probe  # noqa: E402
from trainmark.workloads.images import augment  # noqa: E402
from trainmark.workloads.resnet50.models.oneflow import ResNet50, named_tensors  # noqa: E402
from trainmark.workloads.resnet50.shared import clocks, loop, options, placed, synthetic, tensors  # noqa: E402

os.environ["RANK"] = RANK

# The model


def build_model(opt):
    """The same weights on every rank, each with batch-norm statistics of its own."""
    os.environ["ONEFLOW_ENABLE_NHWC"] = "1" if opt.layout == "NHWC" else "0"  # read by every layer when built
    flow.manual_seed(opt.seed)
    return ResNet50(opt.layout).to_global(**everywhere(opt))


def everywhere(opt):
    return {"placement": flow.placement.all(opt.device), "sbp": flow.sbp.broadcast}


# The data


def batches(opt):
    """An endless stream: one batch that lives on the device, or several that the step copies to it."""
    if opt.data == "synthetic":
        return itertools.repeat(place(opt, opt.device, *synthetic.batches(opt, 1)[0]))
    pool = [place(opt, "cpu", *batch) for batch in synthetic.batches(opt, synthetic.BATCHES)]
    return itertools.cycle(pool)


def place(opt, device, images, labels):
    """Host arrays, images as NCHW, as this rank's part of a batch that is split over all ranks."""
    arrays = (images.transpose(0, 2, 3, 1) if opt.layout == "NHWC" else images), labels
    return together(flow.tensor(array).to(device) for array in arrays)


def together(own):
    """This rank's own tensors as parts of global ones that are split over all ranks."""
    return tuple(part.to_global(flow.placement.all(part.device.type), flow.sbp.split(0)) for part in own)


def normalised(opt, loaded):
    """A loader's batches on the device; there, and not before, pixels become numbers of four bytes."""
    to_nchw = opt.layout == "NCHW"
    spread = augment.MEAN, augment.DEVIATION
    mean, deviation = (
        flow.tensor(part).to(opt.device).view(*((3, 1, 1) if to_nchw else (3,))) for part in spread
    )
    for batch in loaded:
        images, labels = (flow.tensor(part).to(opt.device) for part in batch)
        images = images.permute(0, 3, 1, 2) if to_nchw else images
        yield together([(images.to(flow.float32) - mean) / deviation, labels])


# The step


class Lars(flow.optim.SGD):
    """Each layer's steps in proportion to its weights (You et al. 2017); OneFlow has the update alone."""

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
        self.is_mixed, self.is_lars = bool(opt.recipe.mixup), opt.recipe.optimizer == "lars"
        self.add_optimizer(lars(opt, model) if self.is_lars else sgd(opt, model))
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

    def build(self, images, labels, *others_kept_rate):
        logits = self.model(images.to(self.device))
        losses = self.criterion(logits, labels.to(self.device))
        if self.is_mixed:
            others, kept, _ = others_kept_rate
            losses = kept * losses + (1 - kept) * self.criterion(logits, others.to(self.device))
        losses.mean().backward()
        return losses

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


def sgd(opt, model):
    norms, others = [], []
    for module in model.modules():
        kind = norms if isinstance(module, nn.BatchNorm2d) else others
        kind.extend(module.parameters(recurse=False))
    decayed = {"params": others, "weight_decay": opt.recipe.weight_decay}
    return flow.optim.SGD([{"params": norms}, decayed], momentum=opt.recipe.momentum)


def lars(opt, model):
    parameters = list(model.parameters())
    weights = [parameter for parameter in parameters if parameter.ndim > 1]
    others = [parameter for parameter in parameters if parameter.ndim == 1]  # batch norm and bias
    return Lars(weights, others, opt.recipe)


class Step:
    """The graph, its rate, and of what it gives the mean loss of this rank; all of it stays on the device."""

    def __init__(self, opt, model):
        self.opt = opt
        self.model = model
        self.rate, self.kept = (flow.zeros(1, **everywhere(opt)) for _ in range(2))
        self.graph = StepGraph(opt, model)

    def __call__(self, images, labels):
        inputs = self.inputs(images, labels)
        if not self.graph.is_compiled:
            self.graph.compile_with_rate(*inputs)
        return self.graph(*inputs).to_local().mean()

    def inputs(self, images, labels):
        batch = (
            self.mixed(images.to_local(), labels.to_local()) if self.opt.recipe.mixup else (images, labels)
        )
        return (*batch, self.rate)

    def mixed(self, images, labels):
        """Images that keep a share of themselves, and take the rest from the other end of the batch."""
        kept = self.kept.to_local().to(images.device)
        images = kept * images + (1 - kept) * images.flip(0)
        return (*together([images, labels, labels.flip(0)]), self.kept)

    def state(self):
        """What the graph keeps beside the model, by its own names."""
        if not self.graph.is_compiled:
            batch = place(self.opt, self.opt.device, *synthetic.batches(self.opt, 1)[0])
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


class Training:
    """The verbs of the shared loop; see `shared/loop.py`."""

    def __init__(self, opt):
        self.opt = opt
        begin(opt)
        model = build_model(opt)
        self.update, self.evaluation = Step(opt, model), EvaluationGraph(opt, model)
        self.losses = clocks.LossClock(
            lambda loss: loss.item()
        )  # OneFlow runs on by itself, and has no events

    def batches(self):
        return batches(self.opt)

    def place(self, images, labels):
        return place(self.opt, self.opt.device, images, labels)

    def feed(self, loaded):
        return normalised(self.opt, loaded)

    def own_images(self):
        from trainmark.workloads.images.own import oneflow

        device = self.opt.device
        return placed.Placed(
            oneflow.Images(self.opt),
            lambda images, labels: together([images.to(device), labels.to(device, flow.int64)]),
        )

    def step(self, images, labels, rate, kept=1.0):
        self.update.rate.to_local().fill_(rate)
        self.update.kept.to_local().fill_(kept)
        return self.update(images, labels)

    def evaluate(self, images, labels):
        self.update.model.eval()  # asked when the graph is built
        right = self.evaluation(images, labels).to_local().to(flow.int64)
        self.update.model.train()
        return flow.stack([right[:, 0].sum(), right.sum()]).tolist

    def total(self, numbers):
        added = flow.tensor(numbers, dtype=flow.float64).to(self.opt.device)
        added = added.to_global(flow.placement.all(self.opt.device), flow.sbp.partial_sum)
        return added.to_global(sbp=flow.sbp.broadcast).to_local().tolist()

    def read(self, loss):
        return self.losses.read(loss)

    def parameters(self):
        return sum(parameter.numel() for parameter in self.update.model.parameters())

    def load(self, values, momenta=None, rest=None):
        for name, tensor in named_tensors(self.update.model).items():
            tensor.copy_(flow.tensor(to_layout(self.opt, values[name])))
        if momenta or self.update.graph.is_compiled:
            for name, momentum in self.momentum_buffers():
                momentum.copy_(
                    flow.tensor(to_layout(self.opt, momenta[name]))
                ) if momenta else momentum.zero_()
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

    def clock(self):
        return self.losses

    def memory(self):
        # OneFlow knows what the whole GPU holds, not what it took itself.
        return options.process_memory_peak() if self.opt.device == "cpu" else None

    def device_name(self):
        return flow.cuda.get_device_name() if self.opt.device == "cuda" else "cpu"

    def peak_flops(self):
        flow.comm.barrier()  # the last loss is there, its backward pass may not be over
        side = 8192 if self.opt.device == "cuda" else 1024
        kind = flow.float16 if self.opt.precision == "amp" else flow.float32
        a, b = (flow.randn(side, side).to(self.opt.device, kind) for _ in range(2))
        return loop.peak_flops(lambda: flow.matmul(a, b)[0, 0].item(), side, probe.HostClock())

    def close(self):
        self.losses.close()
        flow.comm.barrier()


def to_layout(opt, value):
    """A canonical tensor in the layout of the model."""
    return value.transpose(0, 2, 3, 1) if value.ndim == 4 and opt.layout == "NHWC" else value


def on_host(opt, named):
    values = {name: tensor.numpy().copy() for name, tensor in named}
    if opt.layout == "NCHW":
        return values
    return {name: v.transpose(0, 3, 1, 2) if v.ndim == 4 else v for name, v in values.items()}


def begin(opt):
    """Threads and precision, before the first graph asks for them; the import has joined the ranks."""
    if opt.device == "cpu" and "OMP_NUM_THREADS" in os.environ:
        # No operator uses several threads; they are dealt out to as many threads as there are CPUs.
        session = session_context.GetDefaultSession()
        session.TryInit()
        resource = session.resource
        resource.cpu_device_num = int(os.environ["OMP_NUM_THREADS"])
        session.update_resource_eagerly(resource)
    os.environ["ONEFLOW_EP_CUDA_ENABLE_TF32_EXECUTION"] = "0" if opt.precision == "fp32" else "1"
    os.environ.pop("NVIDIA_TF32_OVERRIDE", None)
    if opt.precision == "fp32":
        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # OneFlow's own switch leaves out the convolutions


def check(opt):
    """Refuses what this device cannot do; asked before anything starts."""
    if opt.device == "cuda" and not flow.cuda.is_available():
        raise options.Refusal("OneFlow sees no CUDA device here; use --device cpu.")
    options.check_hardware(opt, flow.cuda.get_device_capability() if opt.device == "cuda" else None)
    if opt.device == "cpu" and opt.precision in ("amp", "bf16"):
        raise options.Refusal("OneFlow mixes precisions on GPUs only; use fp32.")
    if opt.precision == "bf16":
        raise options.Refusal("OneFlow 0.9 has no max-pooling in bfloat16; use amp.")
    if opt.device == "cpu" and opt.layout == "NHWC":
        raise options.Refusal("OneFlow's batch norm on the CPU knows NCHW only; use NCHW.")
    if opt.compile:
        raise options.Refusal("OneFlow's step is one compiled graph already; leave compile out.")
    if opt.cuda_graph:
        raise options.Refusal("OneFlow has no CUDA graph of a whole step; leave cuda_graph out.")
    if opt.loader.startswith("dali"):
        raise options.Refusal("DALI feeds PyTorch only; use loader host or own.")


def facts():
    major, minor = divmod(sysconfig.get_cuda_version(), 1000)
    return {
        "framework_version": flow.__version__,
        "cuda": "{}.{}".format(major, minor // 10),
        "cuda_devices": flow.cuda.device_count(),
    }


if __name__ == "__main__":
    loop.main("oneflow", Training, check, facts)
