"""ResNet-50 v1.5 in MXNet (Gluon): the model, the data, the step, main."""

import functools
import itertools
import pathlib

import mxnet as mx
import numpy as np
from mxnet import autograd
from mxnet.contrib import amp
from mxnet.gluon import nn

from trainmark import probe
from trainmark.workloads.resnet50.shared import loop, mpi_ranks, options, recipe, synthetic, tensors

BFLOAT16 = np.dtype([("bfloat16", np.uint16)])  # as MXNet calls it, for numpy has none
BUCKET = 40  # tensors that are averaged and updated together; more than 60 crash the fused update

# The model


class Bottleneck(nn.HybridBlock):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = width * recipe.EXPANSION
        self.conv1, self.bn1 = conv(inputs, width, 1), batch_norm(width)
        self.conv2, self.bn2 = conv(width, width, 3, stride), batch_norm(width)  # v1.5: the stride is here
        self.conv3, self.bn3 = conv(width, outputs, 1), batch_norm(outputs)
        self.relu = nn.Activation("relu")
        self.shortcut = nn.HybridSequential()
        if stride != 1 or inputs != outputs:
            self.shortcut.add(conv(inputs, outputs, 1, stride), batch_norm(outputs))

    def hybrid_forward(self, F, x):  # noqa: N803 - Gluon passes the array or the symbol namespace as F
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


class ResNet50(nn.HybridBlock):
    def __init__(self):
        super().__init__()
        self.stem = nn.HybridSequential()
        self.stem.add(
            conv(3, 64, 7, 2), batch_norm(64), nn.Activation("relu"), nn.MaxPool2D(3, strides=2, padding=1)
        )
        self.blocks, channels = nn.HybridSequential(), 64
        for stage, (depth, width) in enumerate(recipe.STAGES):
            for block in range(depth):
                self.blocks.add(Bottleneck(channels, width, stride=2 if block == 0 and stage > 0 else 1))
                channels = width * recipe.EXPANSION
        self.pool = nn.GlobalAvgPool2D()
        normal = mx.init.Xavier("gaussian", factor_type="in", magnitude=1)
        self.classifier = nn.Dense(recipe.CLASSES, in_units=channels, weight_initializer=normal)

    def hybrid_forward(self, F, x):  # noqa: N803
        return self.classifier(self.pool(self.blocks(self.stem(x))))


class Objective(nn.HybridBlock):
    """The model and its loss in one graph: cross entropy with smoothed labels, the mean of the batch."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def hybrid_forward(self, F, images, labels):  # noqa: N803
        log_p = F.log_softmax(self.model(images))
        right, all_alike = F.pick(log_p, labels), F.mean(log_p, axis=1)
        smoothed = (1 - recipe.LABEL_SMOOTHING) * right + recipe.LABEL_SMOOTHING * all_alike
        return -F.mean(smoothed)


def conv(inputs, outputs, kernel, stride=1):
    he_normal = mx.init.Xavier("gaussian", factor_type="in", magnitude=2)
    return nn.Conv2D(
        outputs,
        kernel,
        stride,
        padding=kernel // 2,
        use_bias=False,
        in_channels=inputs,
        weight_initializer=he_normal,
    )


def batch_norm(channels):
    # MXNet's momentum is the share of the old statistics.
    kept = 1 - recipe.BATCH_NORM_MOMENTUM
    return nn.BatchNorm(momentum=kept, epsilon=recipe.BATCH_NORM_EPSILON, in_channels=channels)


def build_model(opt):
    mx.random.seed(opt.seed)  # the same weights on every rank
    model = ResNet50()
    model.initialize()
    return model


def named_parameters(model):
    """Every parameter by its canonical name; blocks come in the order of the canonical layers."""
    blocks = []
    model.apply(blocks.append)  # children first, in the order in which they were set
    kinds = (nn.Conv2D, nn.BatchNorm, nn.Dense)
    found = {}
    for layer, block in zip(tensors.layers(), (b for b in blocks if isinstance(b, kinds))):
        if layer.kind == "norm":
            parts = block.gamma, block.beta, block.running_mean, block.running_var
        else:
            parts = block.weight, block.bias
        found.update(zip(tensors.names(layer), parts))
    return found


# The data


def batches(opt):
    """An endless stream: one batch, or several in turn; on the CPU host and device memory are the same."""
    count = 1 if opt.data == "synthetic" else synthetic.BATCHES
    return itertools.cycle([place(*batch) for batch in synthetic.batches(opt, count)])


def place(images, labels):
    """Host arrays, images as NCHW."""
    return mx.nd.array(images), mx.nd.array(labels, dtype=np.float32)


# The step


class Step:
    """Forward, backward and update of one batch; `ranks` is None where there is but one."""

    def __init__(self, model, ranks):
        self.ranks = ranks
        self.share = 1 / ranks.size if ranks is not None else 1.0
        self.objective = Objective(model)
        self.objective.hybridize(static_alloc=True, static_shape=True)
        named = named_parameters(model)
        trained = [(name, named[name]) for name in named if not tensors.is_statistic(name)]
        trained.reverse()  # as the backward pass comes to them
        parts = [trained[first : first + BUCKET] for first in range(0, len(trained), BUCKET)]
        self.buckets = [Bucket(*zip(*part)) for part in parts]
        self.last_rate = 0.0

    def __call__(self, images, labels, rate):
        with autograd.record():
            loss = self.objective(images, labels)
        loss.backward()
        # MXNet's velocity is rate x buffer, at the rate of the step before: this brings it to the new one.
        momentum = recipe.MOMENTUM * rate / self.last_rate if self.last_rate else 0.0
        self.last_rate = rate
        for bucket in self.buckets:
            if self.ranks is not None:
                bucket.sum_over(self.ranks)
            bucket.update(rate, momentum, self.share)
        mx.nd.waitall()  # the engine runs behind the host, and cannot be asked when it has passed a step
        return loss


class Bucket:
    """Some parameters, their velocities, and their gradients side by side in one buffer."""

    def __init__(self, names, parameters):
        for parameter in parameters:
            parameter.grad_req = "null"  # gives the gradient array of its own back
        self.weights = [parameter.data() for parameter in parameters]
        self.velocities = [mx.nd.zeros_like(weight) for weight in self.weights]
        self.decays = [recipe.WEIGHT_DECAY * tensors.is_decayed(name) for name in names]
        memory = np.zeros(sum(weight.size for weight in self.weights), np.float32)
        self.buffer = memory[:]  # MXNet makes the array that it is given read-only, not this view of it
        self.flat = mx.nd.from_numpy(memory)
        ends = list(itertools.accumulate(weight.size for weight in self.weights))
        self.gradients = [
            self.flat[end - weight.size : end].reshape(weight.shape)
            for end, weight in zip(ends, self.weights)
        ]
        autograd.mark_variables(self.weights, self.gradients)

    def sum_over(self, ranks):
        self.flat.wait_to_read()  # the backward pass has come by here, and goes on meanwhile
        ranks.Allreduce(mpi_ranks.mpi().IN_PLACE, self.buffer)

    def update(self, rate, momentum, share):
        mx.nd.multi_sgd_mom_update(
            *itertools.chain.from_iterable(zip(self.weights, self.gradients, self.velocities)),
            out=self.weights,
            num_weights=len(self.weights),
            lrs=[rate] * len(self.weights),
            wds=self.decays,
            momentum=momentum,
            rescale_grad=share,
        )

    def forget(self):
        for velocity in self.velocities:
            velocity[:] = 0


# Main


class Training:
    """The verbs of the shared loop; see `shared/loop.py`."""

    def __init__(self, opt):
        self.opt = opt
        self.ranks = begin(opt)
        self.model = build_model(opt)
        self.trained = [p for p in self.model.collect_params().values() if p.grad_req != "null"]
        self.step = Step(self.model, self.ranks)

    def batches(self):
        return batches(self.opt)

    def place(self, images, labels):
        return place(images, labels)

    def read(self, loss):
        return loss.asscalar

    def parameters(self):
        return sum(parameter.data().size for parameter in self.trained)

    def load(self, values):
        for name, parameter in named_parameters(self.model).items():
            parameter.set_data(mx.nd.array(values[name]))
        for bucket in self.step.buckets:
            bucket.forget()

    def tensors(self):
        named = named_parameters(self.model)
        return {name: parameter.data().asnumpy() for name, parameter in named.items()}

    def clock(self):
        return None  # a step waits for its end

    def memory(self):
        return options.process_memory_peak()

    def device_name(self):
        return "cpu"

    def peak_flops(self):
        side = 1024
        kind = BFLOAT16 if self.opt.precision == "bf16" else np.float32
        a, b = (mx.nd.amp_cast(mx.nd.random.normal(shape=(side, side)), dtype=kind) for _ in range(2))
        # `dot` would go to OpenBLAS, which is several times slower than what the model runs on.
        product = functools.partial(mx.nd.FullyConnected, a, b, num_hidden=side, no_bias=True)
        return loop.peak_flops(lambda: product().wait_to_read(), side, probe.HostClock())

    def close(self):
        if self.ranks is not None:
            mpi_ranks.leave(self.ranks)


def begin(opt):
    """The precision set, and the ranks joined: None where there is but one."""
    if opt.precision == "bf16":
        amp.init(target_dtype="bfloat16")  # for all graphs to come; the weights stay float32
    return mpi_ranks.join(opt) if opt.world_size > 1 else None


def check(opt):
    """Refuses what this device cannot do; asked before anything starts."""
    if opt.device == "cuda":
        raise options.Refusal(
            "the MXNet of PyPI is built for the CPU, and mxnet-cu112 is untried here; use --device cpu."
        )
    options.check_hardware(opt, None)
    if opt.precision == "amp":
        raise options.Refusal("MXNet cannot multiply float16 matrices on the CPU; use fp32 or bf16.")
    if opt.precision == "bf16" and not knows_bfloat16():
        raise options.Refusal("MXNet trains in bfloat16 only on a CPU with AVX512_BF16; use fp32.")
    if opt.layout == "NHWC":
        raise options.Refusal("MXNet's convolutions take only NCHW on the CPU; use NCHW.")
    if opt.compile:
        raise options.Refusal("MXNet runs the whole step as a static graph anyway; leave compile out.")
    if opt.world_size > 1:
        mpi_ranks.check()


def knows_bfloat16():
    cpu = pathlib.Path("/proc/cpuinfo")
    return mx.runtime.Features().is_enabled("MKLDNN") and cpu.exists() and "avx512_bf16" in cpu.read_text()


def facts():
    return {
        "framework_version": mx.__version__,
        "cuda_devices": mx.context.num_gpus(),
    }


if __name__ == "__main__":
    loop.main("mxnet", Training, check, facts)
