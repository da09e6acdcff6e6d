"""ResNet-50 v1.5 in MindSpore: the model, the data, the step, main."""

import itertools
import os
import platform
import socket
import subprocess
import sys

os.environ.setdefault("GLOG_v", "3")  # errors only
if platform.machine() == "x86_64":
    # With AVX-512, the oneDNN in MindSpore 2.10 has nothing but its reference code for plainly laid out
    # weights beyond 1x1: a step takes ten times as long as with what it has for AVX2.
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")

import mindspore as ms
import numpy as np
from mindspore import amp, communication, nn, ops
from mindspore.common.initializer import HeNormal
from mindspore.device_context.cpu import op_tuning
from mindspore.device_context.gpu import device as gpu
from mindspore.device_context.gpu import op_precision

from trainmark import probe
from trainmark.workloads.resnet50.shared import loop, options, recipe, synthetic, tensors

# Ends of itself once every rank has left. Its input ends with rank 0; the others then have half a minute.
SCHEDULER = """
"$0" -c "import mindspore; mindspore.communication.init()" &
read -r _
for _ in $(seq 30); do kill -0 $! 2>/dev/null || exit 0; sleep 1; done
kill -9 $!
"""

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


def build_model(opt):
    ms.set_seed(opt.seed)  # the same weights on every rank
    model = ResNet50().set_train()
    if opt.precision == "amp":
        for _, cell in model.cells_and_names():
            if isinstance(cell, (nn.Conv2d, nn.Dense)):
                cell.to_float(ms.float16)  # the weights stay in float32
    return model


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
    """An endless stream: one batch that stays on the device, or several handed to it step by step."""
    if opt.data == "synthetic":
        return itertools.repeat(place(*synthetic.batches(opt, 1)[0]))
    # A tensor keeps its copy on the device once it has one: only a new one is copied again.
    return (place(*batch) for batch in itertools.cycle(synthetic.batches(opt, synthetic.BATCHES)))


def place(images, labels):
    """Host arrays, images as NCHW, as tensors that go to the device with the step that takes them."""
    return ms.from_numpy(images), ms.from_numpy(labels.astype(np.int32))


# The step


class Step(nn.Cell):
    """Forward, backward and update of one batch, compiled into one graph."""

    def __init__(self, opt, model):
        super().__init__()
        self.model = model
        self.criterion = nn.CrossEntropyLoss(label_smoothing=recipe.LABEL_SMOOTHING)
        norms, others = [], []
        for _, cell in model.cells_and_names():
            kind = norms if isinstance(cell, nn.BatchNorm2d) else others
            kind.extend(filter(is_trained, cell.get_parameters(expand=False)))
        self.optimizer = nn.Momentum(
            [{"params": norms, "weight_decay": 0.0}, {"params": others}],
            learning_rate=0.0,
            momentum=recipe.MOMENTUM,
            weight_decay=recipe.WEIGHT_DECAY,
        )
        trained = self.optimizer.parameters
        self.backward = ms.value_and_grad(self.forward, None, trained, has_aux=True)
        self.average = nn.Identity()
        if opt.world_size > 1:
            self.average = nn.DistributedGradReducer(trained, mean=True, degree=opt.world_size)
        self.scaler = loss_scaler(opt)

    def forward(self, images, labels):
        loss = self.criterion(self.model(images).astype(ms.float32), labels)
        return loss if self.scaler is None else self.scaler.scale(loss), loss

    def construct(self, images, labels, rate):
        ops.assign(self.optimizer.learning_rate, rate)
        (_, loss), gradients = self.backward(images, labels)
        gradients = self.average(gradients)
        if self.scaler is None:
            self.optimizer(gradients)
        else:
            gradients = self.scaler.unscale(gradients)
            finite = amp.all_finite(gradients)
            if finite:
                self.optimizer(gradients)
            self.scaler.adjust(finite)
        return loss


def is_trained(parameter):
    return parameter.requires_grad  # running statistics are parameters too


def loss_scaler(opt):
    if opt.precision != "amp":
        return None
    if opt.loss_scale == "dynamic":
        return amp.DynamicLossScaler(2.0**16, scale_factor=2, scale_window=2000)
    return amp.StaticLossScaler(opt.loss_scale)


# Main


class Training:
    """The verbs of the shared loop; see `shared/loop.py`."""

    def __init__(self, opt):
        self.opt = opt
        begin(opt)
        self.scheduler = join_ranks(opt) if opt.world_size > 1 else None  # held: its input closes with us
        self.update = Step(opt, build_model(opt))

    def batches(self):
        return batches(self.opt)

    def place(self, images, labels):
        return place(images, labels)

    def step(self, images, labels, rate):
        return self.update(images, labels, ms.Tensor(rate, ms.float32))  # a plain number would be compiled in

    def read(self, loss):
        return loss.item

    def parameters(self):
        return sum(parameter.size for parameter in self.update.model.trainable_params())

    def load(self, values):
        for name, parameter in named_tensors(self.update.model).items():
            ops.assign(parameter, ms.Tensor(values[name]))
        for moment in self.update.optimizer.moments:
            ops.assign(moment, ops.zeros_like(moment))  # set_data is not seen inside a condition

    def tensors(self):
        named = named_tensors(self.update.model)
        # Copied: on the CPU an array would share the memory that the next step writes.
        return {name: parameter.asnumpy().copy() for name, parameter in named.items()}

    def clock(self):
        return None  # MindSpore waits for the device at the end of a graph

    def memory(self):
        if self.opt.device == "cuda":
            return ms.runtime.max_memory_allocated()
        return options.process_memory_peak()

    def device_name(self):
        return ms.hal.get_device_name(self.opt.local_rank) if self.opt.device == "cuda" else "cpu"

    def peak_flops(self):
        side = 8192 if self.opt.device == "cuda" else 1024
        kind = ms.float16 if self.opt.precision == "amp" else ms.float32
        a, b = (ops.standard_normal((side, side)).astype(kind) for _ in range(2))
        return loop.peak_flops(lambda: ops.matmul(a, b)[0, 0].item(), side, probe.HostClock())

    def close(self):
        if self.opt.world_size > 1:
            # A barrier, of which there is none on the CPU: no rank may leave long after rank 0.
            ops.AllReduce()(ms.Tensor([0.0], ms.float32)).asnumpy()
            communication.release()


def begin(opt):
    """Graph mode on the device, with its precision and its threads set."""
    ms.set_context(mode=ms.GRAPH_MODE)
    if opt.device == "cuda":
        ms.set_device("GPU", opt.local_rank)
        op_precision.conv_allow_tf32(opt.precision != "fp32")
        op_precision.matmul_allow_tf32(opt.precision != "fp32")
    else:
        ms.set_device("CPU")
        # Left to itself it takes a thread for each core, up to 25; it never takes fewer than two.
        op_tuning.threads_num(int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0))))


def join_ranks(opt):
    """As under MindSpore's own msrun the ranks meet at a scheduler, which rank 0 starts and gets here."""
    os.environ.update(
        MS_WORKER_NUM=str(opt.world_size),
        MS_NODE_ID=str(opt.rank),
        MS_SCHED_HOST=socket.gethostbyname(os.environ["MASTER_ADDR"]),
        MS_SCHED_PORT=os.environ["MASTER_PORT"],
    )
    scheduler = None
    if opt.rank == 0:
        scheduler = subprocess.Popen(
            ["sh", "-c", SCHEDULER, sys.executable],
            stdin=subprocess.PIPE,
            env=dict(os.environ, MS_ROLE="MS_SCHED"),
        )
    os.environ["MS_ROLE"] = "MS_WORKER"
    communication.init()
    return scheduler


def check(opt):
    """Refuses what this device cannot do; asked before anything starts."""
    if opt.device == "cuda" and not gpu.is_available():
        raise options.Refusal(
            "MindSpore sees no CUDA device here, and its package knows only CUDA 11; use --device cpu."
        )
    options.check_hardware(opt, ms.hal.get_device_capability(0, "GPU") if opt.device == "cuda" else None)
    if opt.precision == "bf16":
        raise options.Refusal("MindSpore has no batch norm in bfloat16; use fp32, or amp on a GPU.")
    if opt.precision == "amp" and opt.device == "cpu":
        raise options.Refusal("MindSpore on the CPU computes in float32 what is given as float16; use fp32.")
    if opt.layout == "NHWC":
        raise options.Refusal("MindSpore pads a max-pool in NCHW alone; use layout NCHW.")
    if opt.compile:
        raise options.Refusal("MindSpore compiles every step as one graph already; leave compile out.")
    if opt.cuda_graph:
        raise options.Refusal("MindSpore has no CUDA graphs; leave cuda_graph out.")


def facts():
    return {
        "framework_version": ms.__version__,
        "onednn_max_cpu_isa": os.environ.get("ONEDNN_MAX_CPU_ISA"),
        "cuda_devices": gpu.device_count() if gpu.is_available() else 0,
    }


if __name__ == "__main__":
    loop.main("mindspore", Training, check, facts)
