"""Training ResNet-50 v1.5 in Paddle: the model, the data, the step, main."""

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
from paddle.static import default_main_program

from trainmark import probe
from trainmark.workloads.common import peaks
from trainmark.workloads.common.optimizer import lars, loss_scale, mixup
from trainmark.workloads.common.training import Training as CommonTraining
from trainmark.workloads.images import augment
from trainmark.workloads.resnet50.models.paddle import ResNet50, named_tensors, turned
from trainmark.workloads.resnet50.shared import program, refusals, synthetic, tensors

HALF = {"amp": "float16", "bf16": "bfloat16"}
CUDNN = {
    "FLAGS_cudnn_exhaustive_search": True,
    "FLAGS_conv_workspace_size_limit": 4096,  # MiB instead of 512: more algorithms to choose from
    "FLAGS_cudnn_batchnorm_spatial_persistent": True,  # else NHWC in float16 is turned for every batch norm
}

# The model


def build_model(opt):
    paddle.seed(opt.seed)  # the same weights on every rank
    model = paddle.jit.to_static(ResNet50(opt.layout), backend="CINN" if opt.compile else None)
    # It averages gradients only; batch-norm statistics stay each rank's own.
    return paddle.DataParallel(model) if opt.world_size > 1 else model


# The data


def batches(opt):
    """Return an endless stream: one batch that stays on the device, or several copied to it step by step."""
    if opt.data == "synthetic":
        return itertools.repeat(place(opt, *synthetic.batches(opt, 1)[0]))
    pool = synthetic.batches(opt, synthetic.BATCHES)
    if opt.device == "cpu":
        return itertools.cycle([place(opt, *batch) for batch in pool])
    return iter(prefetch(itertools.cycle([place(opt, *batch, paddle.CUDAPinnedPlace()) for batch in pool])))


def place(opt, images, labels, device=None):
    """Copy host arrays, images as NCHW, to the device in the layout that was asked for."""
    if opt.layout == "NHWC":
        images = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
    return paddle.to_tensor(images, place=device), paddle.to_tensor(labels, place=device)


def normalise(opt, loaded):
    """Copy a loader's batches to the device; there, and not before, pixels become float32."""
    to_nchw = opt.layout == "NCHW"
    moments = augment.MEAN, augment.DEVIATION
    mean, deviation = (paddle.to_tensor(part).reshape([3, 1, 1] if to_nchw else [3]) for part in moments)
    on_host = paddle.CUDAPinnedPlace() if opt.device == "cuda" else None
    loaded = (tuple(paddle.to_tensor(part, place=on_host) for part in batch) for batch in loaded)
    for images, labels in prefetch(loaded) if opt.device == "cuda" else loaded:
        images = images.transpose([0, 3, 1, 2]) if to_nchw else images
        yield (images.astype("float32") - mean) / deviation, labels


def prefetch(source):
    """Copy batches in pinned memory on a stream of its own, each while the one before is in use."""
    return paddle.io.DataLoader(Stream(source), batch_size=None, use_buffer_reader=True)


class Stream(paddle.io.IterableDataset):
    def __init__(self, source):
        super().__init__()
        self.source = source

    def __iter__(self):
        return iter(self.source)


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
        half = HALF.get(opt.precision)
        self.autocast = contextlib.nullcontext
        if half is not None:
            self.autocast = lambda: paddle.amp.auto_cast(dtype=half, level="O1")
        # Paddle's scaler looks for an overflow on the host: with it, and only with it, a step waits.
        self.scaler = paddle.amp.GradScaler(
            enable=opt.precision == "amp",
            init_loss_scaling=loss_scale.initial(opt),
            use_dynamic_loss_scaling=opt.loss_scale == "dynamic",
        )

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
        logits = self.model(mixup.mix(images, images.flip(0), self.lam))
        return mixup.mix(self.criterion(logits, labels), self.criterion(logits, labels.flip(0)), self.lam)

    @paddle.no_grad()
    def apply_lars(self):
        """Scale each layer's gradient by the rate and its LARS trust ratio (You et al. 2017)."""
        trust, decay = self.recipe.trust, self.recipe.weight_decay
        for parameter in filter(is_trained, self.model.parameters()):
            gradient = parameter.grad
            if lars.is_excluded(parameter.ndim):
                gradient.scale_(self.rate)
                continue
            weight_norm, gradient_norm = parameter.norm(), gradient.norm()
            ratio = lars.trust_ratio(weight_norm, gradient_norm, trust, decay)
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


class Training(CommonTraining):
    """The verbs of the loop; see `common/training.py`."""

    def __init__(self, opt):
        self.opt = opt
        set_up(opt)
        model = build_model(opt)
        self.plain = next(
            layer for layer in model.sublayers(include_self=True) if isinstance(layer, ResNet50)
        )
        self.update = Step(opt, model)

    def batches(self):
        return batches(self.opt)

    def place(self, images, labels):
        return place(self.opt, images, labels)

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

    def total(self, numbers):
        added = paddle.to_tensor(numbers, dtype="float64")
        if self.opt.world_size > 1:
            dist.all_reduce(added)
        return added.tolist()

    def read(self, loss):
        if self.opt.device == "cuda":
            loss = loss.pin_memory(blocking=False)  # in stream order, so that reading it waits for nothing
        return lambda: float(loss.numpy())

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
            counts = {name: int(rest[name]) for name in ("incr_count", "decr_count")}
            state = dict(self.update.scaler.state_dict(), scale=[rest["scale"]], **counts)
            self.update.scaler.load_state_dict(state)

    def tensors(self):
        return on_host(named_tensors(self.plain).items())

    def momenta(self):
        return on_host(self.update.velocities())

    def rest(self):
        state, names = self.update.scaler.state_dict(), ("scale", "incr_count", "decr_count")
        return {name: float(np.squeeze(state[name])) for name in names if name in state}

    def clock(self):
        timed = functools.partial(paddle.device.Event, enable_timing=True)
        return probe.EventClock(timed) if self.opt.device == "cuda" else None

    def device_memory(self):
        return paddle.device.cuda.max_memory_allocated()

    def gpu_name(self):
        return paddle.device.cuda.get_device_name()

    def peak_flops(self):
        side = 8192 if self.opt.device == "cuda" else 1024
        kind = HALF.get(self.opt.precision, "float32")
        a, b = (paddle.randn([side, side]).astype(kind) for _ in range(2))
        return peaks.peak_flops(lambda: paddle.matmul(a, b), side, self.clock())

    def close(self):
        if self.opt.world_size > 1:
            dist.barrier()  # rank 0 keeps the store that the others still talk to
            dist.destroy_process_group()


def on_host(named):
    return {name: turned(name, tensor.numpy()) for name, tensor in named}


def set_up(opt):
    """Choose the device, with its precision and its ranks."""
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
    """Refuse what Paddle cannot do on this machine; asked before anything starts."""
    has_gpu = opt.device == "cuda" and paddle.device.cuda.device_count()
    capability = paddle.device.cuda.get_device_capability() if has_gpu else None
    refusals.check("paddle", opt, capability, cinn=has_gpu and paddle.is_compiled_with_cinn())


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
    program.main("paddle", Training, check, facts)
