"""Training ResNet-50 v1.5 in MindSpore: the model, the data, the step, main."""

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
from mindspore.device_context.cpu import op_tuning
from mindspore.device_context.gpu import device as gpu
from mindspore.device_context.gpu import op_precision

from trainmark import probe
from trainmark.workloads.common import peaks
from trainmark.workloads.common.optimizer import loss_scale
from trainmark.workloads.common.optimizer.lars import is_excluded, trust_ratio
from trainmark.workloads.common.optimizer.mixup import mix
from trainmark.workloads.common.training import Training as CommonTraining
from trainmark.workloads.images import augment
from trainmark.workloads.resnet50.models.mindspore import ResNet50, named_tensors
from trainmark.workloads.resnet50.shared import program, refusals, synthetic, tensors

# On the CPU MindSpore adds only float32 over ranks: numbers go as digits of this base, and none is rounded.
PLACES = 4096.0 ** np.arange(-2, 4)

# Ends of itself once every rank has left. Its input ends with rank 0; the others then have half a minute.
SCHEDULER = """
"$0" -c "import mindspore; mindspore.communication.init()" &
read -r _
for _ in $(seq 30); do kill -0 $! 2>/dev/null || exit 0; sleep 1; done
kill -9 $!
"""

# The model


def build_model(opt):
    ms.set_seed(opt.seed)  # the same weights on every rank
    model = ResNet50().set_train()
    if opt.precision == "amp":
        for _, cell in model.cells_and_names():
            if isinstance(cell, (nn.Conv2d, nn.Dense)):
                cell.to_float(ms.float16)  # the weights stay in float32
    return model


# The data


def batches(opt):
    """Return an endless stream: one batch that stays on the device, or several copied to it step by step."""
    if opt.data == "synthetic":
        return itertools.repeat(place(*synthetic.batches(opt, 1)[0]))
    # A tensor keeps its copy on the device once it has one: only a new one is copied again.
    return (place(*batch) for batch in itertools.cycle(synthetic.batches(opt, synthetic.BATCHES)))


def place(images, labels):
    """Make tensors of host arrays, images as NCHW; they go to the device with the step that takes them."""
    return ms.from_numpy(images), ms.from_numpy(labels.astype(np.int32))


def normalise(loaded):
    """Copy a loader's batches to the device; there, and not before, pixels become float32."""
    moments = augment.MEAN, augment.DEVIATION
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
        self.scaler = loss_scaler(opt)

    def forward(self, images, labels, lam):
        loss = self.mixup_loss(images, labels, lam) if self.has_mixup else self.loss(images, labels)
        return loss if self.scaler is None else self.scaler.scale(loss), loss

    def loss(self, images, labels):
        return self.criterion(self.model(images).astype(ms.float32), labels)

    def mixup_loss(self, images, labels, lam):
        """Return the cross-entropy of a mixup batch (Zhang et al. 2018)."""
        logits = self.model(mix(images, images.flip((0,)), lam)).astype(ms.float32)
        return mix(self.criterion(logits, labels), self.criterion(logits, labels.flip((0,))), lam)

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
            if is_excluded(parameter.ndim):
                steps += (rate * gradient,)
            else:
                weight_norm, gradient_norm = ops.norm(parameter), ops.norm(gradient)
                ratio = trust_ratio(weight_norm, gradient_norm, self.trust, self.decay)
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


def loss_scaler(opt):
    if opt.precision != "amp":
        return None
    if opt.loss_scale == "dynamic":
        return amp.DynamicLossScaler(loss_scale.FIRST, scale_factor=2, scale_window=loss_scale.GROWTH_STEPS)
    return amp.StaticLossScaler(opt.loss_scale)


# Main


class Training(CommonTraining):
    """The verbs of the loop; see `common/training.py`."""

    def __init__(self, opt):
        self.opt = opt
        set_up(opt)
        self.scheduler = join_ranks(opt) if opt.world_size > 1 else None  # held: its input closes with us
        model = build_model(opt)
        self.update, self.evaluation = Step(opt, model), Evaluation(model)

    def batches(self):
        return batches(self.opt)

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

    def total(self, numbers):
        digits = np.floor(np.array(numbers)[:, None] / PLACES) % 4096
        if self.opt.world_size > 1:
            digits = ops.AllReduce()(ms.Tensor(digits, ms.float32)).asnumpy()
        return (digits * PLACES).sum(axis=1).tolist()

    def read(self, loss):
        return loss.item

    def clock(self):
        return probe.SynchronousClock()  # MindSpore waits for the device

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
        return on_host(named_tensors(self.update.model).items())

    def momenta(self):
        return on_host(self.moments())

    def moments(self):
        optimizer = self.update.optimizer
        known = {parameter.name: moment for parameter, moment in zip(optimizer.parameters, optimizer.moments)}
        for name, parameter in named_tensors(self.update.model).items():
            if not tensors.is_statistic(name):
                yield name, known[parameter.name]

    def rest(self):
        return {name: float(state.asnumpy()) for name, state in self.scaler_state()}

    def scaler_state(self):
        scaler = self.update.scaler
        dynamic = isinstance(scaler, amp.DynamicLossScaler)
        return [("scale", scaler.scale_value), ("counter", scaler.counter)] if dynamic else []

    def device_memory(self):
        return ms.runtime.max_memory_allocated()

    def gpu_name(self):
        return ms.hal.get_device_name(self.opt.local_rank)

    def peak_flops(self):
        side = 8192 if self.opt.device == "cuda" else 1024
        kind = ms.float16 if self.opt.precision == "amp" else ms.float32
        a, b = (ops.standard_normal((side, side)).astype(kind) for _ in range(2))
        return peaks.peak_flops(lambda: ops.matmul(a, b)[0, 0].item(), side)

    def close(self):
        if self.opt.world_size > 1:
            # A barrier, of which there is none on the CPU: no rank may leave long after rank 0.
            ops.AllReduce()(ms.Tensor([0.0], ms.float32)).asnumpy()
            communication.release()


def on_host(named):
    # Copied: on the CPU an array would share the memory that the next step writes.
    return {name: parameter.asnumpy().copy() for name, parameter in named}


def set_up(opt):
    """Choose graph mode and the device, with its precision and its threads."""
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
        command, environment = ["sh", "-c", SCHEDULER, sys.executable], dict(os.environ, MS_ROLE="MS_SCHED")
        scheduler = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    os.environ["MS_ROLE"] = "MS_WORKER"
    communication.init()
    return scheduler


def check(opt):
    """Refuse what MindSpore cannot do on this machine; asked before anything starts."""
    has_gpu = opt.device == "cuda" and gpu.is_available()
    refusals.check("mindspore", opt, ms.hal.get_device_capability(0, "GPU") if has_gpu else None)


def facts():
    return {
        "framework_version": ms.__version__,
        "onednn_max_cpu_isa": os.environ.get("ONEDNN_MAX_CPU_ISA"),
        "cuda_devices": gpu.device_count() if gpu.is_available() else 0,
    }


if __name__ == "__main__":
    program.main("mindspore", Training, check, facts)
