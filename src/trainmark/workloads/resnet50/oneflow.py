"""ResNet-50 v1.5 in OneFlow: the model, the data, the step, main."""

import itertools
import os

from trainmark.workloads.resnet50.shared.own_address import Doorkeeper

RANK = os.environ.get("RANK", "0")

with Doorkeeper():  # the import joins the ranks
    import oneflow as flow  # where nothing launched it, it sets RANK to -1
from oneflow import nn, sysconfig  # noqa: E402
from oneflow.framework import session_context  # noqa: E402

from trainmark import probe  # noqa: E402
from trainmark.workloads.resnet50.shared import clocks, loop, options, recipe, synthetic, tensors  # noqa: E402

os.environ["RANK"] = RANK

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


def build_model(opt):
    """The same weights on every rank, each with batch-norm statistics of its own."""
    os.environ["ONEFLOW_ENABLE_NHWC"] = "1" if opt.layout == "NHWC" else "0"  # read by every layer when built
    flow.manual_seed(opt.seed)
    return ResNet50(opt.layout).to_global(**everywhere(opt))


def everywhere(opt):
    return {"placement": flow.placement.all(opt.device), "sbp": flow.sbp.broadcast}


def named_tensors(model):
    """This rank's own of every tensor by its canonical name; modules come in the order of the layers."""
    kinds = (nn.Conv2d, nn.BatchNorm2d, nn.Linear)
    found = {}
    for layer, module in zip(tensors.layers(), (m for m in model.modules() if isinstance(m, kinds))):
        if layer.kind == "norm":
            parts = module.weight, module.bias, module.running_mean, module.running_var
        else:
            parts = module.parameters()
        found.update(zip(tensors.names(layer), (part.to_local() for part in parts)))
    return found


# The data


def batches(opt):
    """An endless stream: one batch that lives on the device, or several that the step copies to it."""
    if opt.data == "synthetic":
        return itertools.repeat(place(opt, opt.device, *synthetic.batches(opt, 1)[0]))
    pool = [place(opt, "cpu", *batch) for batch in synthetic.batches(opt, synthetic.BATCHES)]
    return itertools.cycle(pool)


def place(opt, device, images, labels):
    """Host arrays, images as NCHW, as this rank's part of a batch that is split over all ranks."""
    split = {"placement": flow.placement.all(device), "sbp": flow.sbp.split(0)}
    arrays = (images.transpose(0, 2, 3, 1) if opt.layout == "NHWC" else images), labels
    return tuple(flow.tensor(array).to(device).to_global(**split) for array in arrays)


# The step


class StepGraph(nn.Graph):
    """Forward, backward and update of one batch as a static graph; gives the loss of every image."""

    def __init__(self, opt, model):
        super().__init__()
        self.device = opt.device
        self.model = model
        self.criterion = nn.CrossEntropyLoss(reduction="none", label_smoothing=recipe.LABEL_SMOOTHING)
        norms, others = [], []
        for module in model.modules():
            kind = norms if isinstance(module, nn.BatchNorm2d) else others
            kind.extend(module.parameters(recurse=False))
        decayed = {"params": others, "weight_decay": recipe.WEIGHT_DECAY}
        self.add_optimizer(flow.optim.SGD([{"params": norms}, decayed], momentum=recipe.MOMENTUM))
        self.config.allow_fuse_add_to_output(True)
        self.config.allow_fuse_cast_scale(True)
        self.config.allow_fuse_model_update_ops(True)
        self.config.enable_cudnn_conv_heuristic_search_algo(False)  # tries them all, and takes the fastest
        if opt.precision == "amp":
            self.config.enable_amp(True)
            dynamic = opt.loss_scale == "dynamic"
            self.set_grad_scaler(
                flow.amp.GradScaler() if dynamic else flow.amp.StaticGradScaler(opt.loss_scale)
            )

    def build(self, images, labels, rate):
        losses = self.criterion(self.model(images.to(self.device)), labels.to(self.device))
        losses.mean().backward()
        return losses

    def compile_with_rate(self, *inputs):
        """The update of a graph takes its rate from a fixed schedule; here from the graph's last input."""
        self.build_graph(*inputs)
        job = self._full_graph_proto
        rate = [op.name for op in job.net.op if op.HasField("input_conf")][-1]
        for op in job.net.op:
            if "learning_rate" in op.user_conf.input:
                op.user_conf.input["learning_rate"].s[:] = [rate + "/out"]
        self._full_graph_proto = job
        self.finish_complie_and_init_runtime()


class Step:
    """The graph, its rate, and of what it gives the mean loss of this rank; all of it stays on the device."""

    def __init__(self, opt, model):
        self.model = model
        self.rate = flow.zeros(1, **everywhere(opt))
        self.graph = StepGraph(opt, model)

    def __call__(self, images, labels):
        if not self.graph.is_compiled:
            self.graph.compile_with_rate(images, labels, self.rate)
        return self.graph(images, labels, self.rate).to_local().mean()

    def momenta(self):
        state = self.graph.state_dict()
        return [value.to_local() for name, value in state.items() if name.endswith("-momentum")]


# Main


class Training:
    """The verbs of the shared loop; see `shared/loop.py`."""

    def __init__(self, opt):
        self.opt = opt
        begin(opt)
        self.update = Step(opt, build_model(opt))
        self.losses = clocks.LossClock(
            lambda loss: loss.item()
        )  # OneFlow runs on by itself, and has no events

    def batches(self):
        return batches(self.opt)

    def place(self, images, labels):
        return place(self.opt, self.opt.device, images, labels)

    def step(self, images, labels, rate):
        self.update.rate.to_local().fill_(rate)
        return self.update(images, labels)

    def read(self, loss):
        return self.losses.read(loss)

    def parameters(self):
        return sum(parameter.numel() for parameter in self.update.model.parameters())

    def load(self, values):
        for name, tensor in named_tensors(self.update.model).items():
            value = values[name]
            nhwc = value.ndim == 4 and self.opt.layout == "NHWC"
            tensor.copy_(flow.tensor(value.transpose(0, 2, 3, 1) if nhwc else value))
        for momentum in self.update.momenta():
            momentum.zero_()

    def tensors(self):
        values = {name: tensor.numpy().copy() for name, tensor in named_tensors(self.update.model).items()}
        if self.opt.layout == "NCHW":
            return values
        return {name: v.transpose(0, 3, 1, 2) if v.ndim == 4 else v for name, v in values.items()}

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


def facts():
    major, minor = divmod(sysconfig.get_cuda_version(), 1000)
    return {
        "framework_version": flow.__version__,
        "cuda": "{}.{}".format(major, minor // 10),
        "cuda_devices": flow.cuda.device_count(),
    }


if __name__ == "__main__":
    loop.main("oneflow", Training, check, facts)
