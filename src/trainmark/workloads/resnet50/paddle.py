"""ResNet-50 v1.5 in Paddle: the model, the data, the step, main."""

import contextlib
import functools
import itertools
import os

# Read when Paddle is imported; without the two it computes in one thread.
os.environ.setdefault("OMP_NUM_THREADS", str(len(os.sched_getaffinity(0))))
os.environ.setdefault("FLAGS_paddle_num_threads", os.environ["OMP_NUM_THREADS"])
os.environ.setdefault("GLOG_minloglevel", "2")  # else every executor says that it runs

import numpy as np
import paddle
import paddle.distributed as dist
from paddle import nn
from paddle.base import core

from trainmark import probe
from trainmark.workloads.resnet50.shared import clocks, loop, options, recipe, synthetic, tensors

HALF = {"amp": "float16", "bf16": "bfloat16"}
CUDNN = {
    "FLAGS_cudnn_exhaustive_search": True,
    "FLAGS_conv_workspace_size_limit": 4096,  # MiB instead of 512: more algorithms to choose from
    "FLAGS_cudnn_batchnorm_spatial_persistent": True,  # else NHWC in float16 is turned for every batch norm
}

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
        self.classifier = nn.Linear(
            channels,
            recipe.CLASSES,
            weight_attr=nn.initializer.KaimingNormal(nonlinearity="linear"),
            bias_attr=nn.initializer.Constant(0.0),
        )

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.classifier(x.mean(axis=self.pixels))


def conv(inputs, outputs, kernel, stride, layout):
    return nn.Conv2D(
        inputs,
        outputs,
        kernel,
        stride,
        padding=kernel // 2,
        weight_attr=nn.initializer.KaimingNormal(nonlinearity="relu"),
        bias_attr=False,
        data_format=layout,
    )


def batch_norm(channels, layout):
    kept = 1 - recipe.BATCH_NORM_MOMENTUM  # Paddle's momentum is the share of the old statistics
    return nn.BatchNorm2D(channels, kept, recipe.BATCH_NORM_EPSILON, data_format=layout)


def build_model(opt):
    paddle.seed(opt.seed)  # the same weights on every rank
    model = paddle.jit.to_static(ResNet50(opt.layout), backend="CINN" if opt.compile else None)
    # It averages gradients only; batch-norm statistics stay each rank's own.
    return paddle.DataParallel(model) if opt.world_size > 1 else model


def named_tensors(model):
    """Every tensor by its canonical name; layers come in the canonical order, running statistics last."""
    kinds = (nn.Conv2D, nn.BatchNorm2D, nn.Linear)
    found = {}
    for layer, module in zip(tensors.layers(), (m for m in model.sublayers() if isinstance(m, kinds))):
        found.update(zip(tensors.names(layer), module.parameters()))
    return found


def turned(name, value):
    """The classifier's weight is (features, classes) here; turning it twice gives it back."""
    return value.T if name == "classifier.weight" else value


# The data


def batches(opt):
    """An endless stream: one batch that lives on the device, or several copied to it step by step."""
    if opt.data == "synthetic":
        return itertools.repeat(place(opt, *synthetic.batches(opt, 1)[0]))
    pool = synthetic.batches(opt, synthetic.BATCHES)
    if opt.device == "cpu":
        return itertools.cycle([place(opt, *batch) for batch in pool])
    # The loader copies on a thread and a stream of its own while the batch before is in use.
    pinned = [place(opt, *batch, paddle.CUDAPinnedPlace()) for batch in pool]
    return iter(paddle.io.DataLoader(Pool(pinned), batch_size=None, use_buffer_reader=True))


def place(opt, images, labels, device=None):
    """Host arrays, images as NCHW, on the device and in the layout that was asked for."""
    if opt.layout == "NHWC":
        images = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
    return paddle.to_tensor(images, place=device), paddle.to_tensor(labels, place=device)


class Pool(paddle.io.IterableDataset):
    def __init__(self, pool):
        super().__init__()
        self.pool = pool

    def __iter__(self):
        return itertools.cycle(self.pool)


# The step


class Step:
    """Forward, backward and update of one batch; the loss stays on the device."""

    def __init__(self, opt, model):
        self.model = model
        self.criterion = nn.CrossEntropyLoss(label_smoothing=recipe.LABEL_SMOOTHING)
        norms, others = [], []
        for layer in model.sublayers():
            kind = norms if isinstance(layer, nn.BatchNorm2D) else others
            kind.extend(filter(is_trained, layer.parameters(include_sublayers=False)))
        self.optimizer = paddle.optimizer.Momentum(
            learning_rate=0.0,
            momentum=recipe.MOMENTUM,
            parameters=[{"params": norms, "weight_decay": 0.0}, {"params": others}],
            weight_decay=recipe.WEIGHT_DECAY,
            use_multi_tensor=True,  # all of a group in one call
        )
        half = HALF.get(opt.precision)
        self.autocast = contextlib.nullcontext
        if half is not None:
            self.autocast = lambda: paddle.amp.auto_cast(dtype=half, level="O1")
        dynamic = opt.loss_scale == "dynamic"
        # Paddle's scaler looks for an overflow on the host: with it, and only with it, a step waits.
        self.scaler = paddle.amp.GradScaler(
            enable=opt.precision == "amp",
            init_loss_scaling=2.0**16 if dynamic else opt.loss_scale,
            use_dynamic_loss_scaling=dynamic,
        )

    def __call__(self, images, labels):
        self.optimizer.clear_grad(set_to_zero=False)
        with self.autocast():
            loss = self.criterion(self.model(images), labels)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()


def is_trained(parameter):
    return not parameter.stop_gradient  # running statistics are parameters too


# Main


class Training:
    """The verbs of the shared loop; see `shared/loop.py`."""

    def __init__(self, opt):
        self.opt = opt
        begin(opt)
        self.update = Step(opt, build_model(opt))

    def batches(self):
        return batches(self.opt)

    def place(self, images, labels):
        return place(self.opt, images, labels)

    def step(self, images, labels, rate):
        self.update.optimizer.set_lr(rate)
        return self.update(images, labels)

    def read(self, loss):
        if self.opt.device == "cuda":
            loss = loss.pin_memory(blocking=False)  # in stream order, so that reading it waits for nothing
        return lambda: float(loss.numpy())

    def parameters(self):
        return sum(parameter.size for parameter in self.update.model.parameters() if is_trained(parameter))

    def load(self, values):
        for name, tensor in named_tensors(self.update.model).items():
            tensor.set_value(np.ascontiguousarray(turned(name, values[name])))
        for velocity in self.update.optimizer.state_dict().values():
            velocity.zero_()

    def tensors(self):
        named = named_tensors(self.update.model)
        return {name: turned(name, tensor.numpy()) for name, tensor in named.items()}

    def clock(self):
        timed = functools.partial(paddle.device.Event, enable_timing=True)
        return clocks.EventClock(timed) if self.opt.device == "cuda" else None

    def memory(self):
        if self.opt.device == "cuda":
            return paddle.device.cuda.max_memory_allocated()
        return options.process_memory_peak()

    def device_name(self):
        return paddle.device.cuda.get_device_name() if self.opt.device == "cuda" else "cpu"

    def peak_flops(self):
        side = 8192 if self.opt.device == "cuda" else 1024
        kind = HALF.get(self.opt.precision, "float32")
        a, b = (paddle.randn([side, side]).astype(kind) for _ in range(2))
        return loop.peak_flops(lambda: paddle.matmul(a, b), side, self.clock() or probe.HostClock())

    def close(self):
        if self.opt.world_size > 1:
            dist.barrier()  # rank 0 keeps the store that the others still talk to
            dist.destroy_process_group()


def begin(opt):
    """The device, with its precision and its ranks set."""
    paddle.set_device(f"gpu:{opt.local_rank}" if opt.device == "cuda" else "cpu")
    if opt.device == "cuda":
        core.set_cublas_switch(opt.precision != "fp32")  # both allow TF32 unless told otherwise
        core.set_cudnn_switch(opt.precision != "fp32")
        paddle.set_flags(CUDNN)
    if opt.world_size > 1:
        peers = os.environ["TRAINMARK_PEERS"]
        os.environ.update(
            PADDLE_DISTRI_BACKEND="nccl" if opt.device == "cuda" else "gloo",
            PADDLE_MASTER="{MASTER_ADDR}:{MASTER_PORT}".format(**os.environ),
            PADDLE_TRAINER_ID=str(opt.rank),
            PADDLE_TRAINERS_NUM=str(opt.world_size),
            PADDLE_TRAINER_ENDPOINTS=peers,
            PADDLE_CURRENT_ENDPOINT=peers.split(",")[opt.rank],
            FLAGS_selected_gpus=str(opt.local_rank),
        )
        dist.init_parallel_env()


def check(opt):
    """Refuses what this device cannot do; asked before anything starts."""
    if opt.device == "cuda" and not paddle.device.cuda.device_count():
        raise options.Refusal("Paddle sees no CUDA device here; use --device cpu or paddlepaddle-gpu.")
    capability = paddle.device.cuda.get_device_capability() if opt.device == "cuda" else None
    options.check_hardware(opt, capability)
    if opt.precision in HALF and opt.device == "cpu":
        raise options.Refusal(
            "Paddle's auto_cast leaves everything in float32 on a CPU; use --precision fp32."
        )
    if opt.precision == "amp" and capability < (7, 0):
        raise options.Refusal("Paddle's auto_cast needs compute capability 7.0 or later; use fp32.")
    if opt.compile and not (opt.device == "cuda" and paddle.is_compiled_with_cinn()):
        raise options.Refusal(
            "Paddle's compiler, CINN, needs a CUDA device and a build that has it; leave compile out."
        )
    if opt.cuda_graph:
        raise options.Refusal("the whole-step CUDA graph is not built for Paddle; leave cuda_graph out.")


def facts():
    has_cuda = paddle.is_compiled_with_cuda()
    return {
        "framework_version": paddle.__version__,
        "cuda": paddle.version.cuda() if has_cuda else None,
        "cudnn": paddle.version.cudnn() if has_cuda else None,
        "nccl": paddle.version.nccl() if has_cuda else None,
        "cuda_devices": paddle.device.cuda.device_count(),
    }


if __name__ == "__main__":
    loop.main("paddle", Training, check, facts)
