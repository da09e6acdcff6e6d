"""Training ResNet-50 v1.5 in plain JAX: the model, the data, the step, main."""

import ctypes
import functools
import itertools
import os
from importlib import metadata
from typing import NamedTuple

import jax
import jaxlib
import numpy as np
from jax import lax
from jax import numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from trainmark import probe
from trainmark.workloads.common import peaks
from trainmark.workloads.common.optimizer import lars, loss_scale, mixup
from trainmark.workloads.common.ranks.own_address import own_address
from trainmark.workloads.common.training import Training as CommonTraining
from trainmark.workloads.images import augment
from trainmark.workloads.resnet50.models.jax import Pass, resnet50
from trainmark.workloads.resnet50.shared import program, recipe, refusals, synthetic, tensors

HALF = {"amp": jnp.float16, "bf16": jnp.bfloat16}
# What XLA may make of float32 operands in products and convolutions; on NVIDIA its default is TF32.
FLOAT32 = {"fp32": "highest", "tf32": "tensorfloat32"}
RANKS = "ranks"  # the one axis of the mesh: a device of each rank

# The model


def build_model(opt):
    """Return every tensor by its canonical name; drawn on the host, so that all ranks begin alike."""
    random = np.random.default_rng(opt.seed)
    values = {}
    for layer in tensors.layers():
        zeros = np.zeros(layer.shape[0], np.float32)
        if layer.kind == "norm":
            parts = zeros + 1, zeros, zeros, zeros + 1
        else:
            gain = 2.0 if layer.kind == "conv" else 1.0
            deviation = np.float32(np.sqrt(gain / np.prod(layer.shape[1:])))
            parts = random.standard_normal(layer.shape, np.float32) * deviation, zeros
        values.update(zip(tensors.names(layer), parts))
    return values


# The data


def batches(opt, own):
    """Return an endless stream: one batch that stays on the device, or several copied to it step by step."""
    if opt.data == "synthetic":
        return itertools.repeat(place(opt, own, *synthetic.batches(opt, 1)[0]))
    host = own.with_memory_kind("pinned_host") if opt.device == "cuda" else own
    pool = [place(opt, host, *batch) for batch in synthetic.batches(opt, synthetic.BATCHES)]
    if opt.device == "cpu":
        return itertools.cycle(pool)
    return prefetch(jax.device_put(batch, own) for batch in itertools.cycle(pool))


def place(opt, own, images, labels):
    """Copy host arrays, images as NCHW, to the rank's own device in the layout that was asked for."""
    if opt.layout == "NHWC":
        images = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
    put = functools.partial(jax.make_array_from_process_local_data, own)
    return put(images), put(labels.astype(np.int32))


def normalise(opt, own, loaded):
    """Copy a loader's batches to the device; there, and not before, pixels become float32."""
    put = functools.partial(jax.make_array_from_process_local_data, own)
    for pixels, labels in prefetch((put(pixels), put(labels.astype(np.int32))) for pixels, labels in loaded):
        yield numbers(pixels, opt.layout), labels
        pixels.block_until_ready()  # the loader writes a batch anew when two more are asked for


@functools.partial(jax.jit, static_argnums=1)
def numbers(pixels, layout):
    images = (pixels.astype(jnp.float32) - jnp.array(augment.MEAN)) / jnp.array(augment.DEVIATION)
    return images if layout == "NHWC" else images.transpose(0, 3, 1, 2)


def prefetch(source):
    """Give batches to the device, each on its way there while the one before is in use."""
    arriving = next(source, None)
    for following in source:
        yield arriving
        arriving = following
    if arriving is not None:
        yield arriving


# The step


class State(NamedTuple):
    """What a step takes and gives back in the same memory: tensors by canonical name, and the loss scale."""

    weights: dict
    momenta: dict
    statistics: dict  # each rank its own: one array of all ranks, spread over them
    scale: jax.Array
    good_steps: jax.Array  # since the scale has changed


SPREAD = State(weights=P(), momenta=P(), statistics=P(RANKS), scale=P(), good_steps=P())


def compiled(opt, mesh):
    """Compile the step, and the count of what is correct: each rank's own, with its own batch."""
    spread = functools.partial(jax.shard_map, mesh=mesh, check_vma=False)  # with it JAX would sum gradients
    step = spread(
        functools.partial(update, opt),
        in_specs=(SPREAD, P(RANKS), P(RANKS), P(), P()),
        out_specs=(SPREAD, P(RANKS)),
    )
    counting = spread(
        functools.partial(count, opt), in_specs=(SPREAD, P(RANKS), P(RANKS)), out_specs=P(RANKS)
    )
    return jax.jit(step, donate_argnums=0), jax.jit(counting)


def update(opt, state, images, labels, rate, lam):
    """Forward, backward and update as each rank does it; loss and statistics stay its own."""

    def scaled_loss(weights):
        net = Pass(weights, {}, opt.layout)
        if opt.recipe.mixup:
            loss = mixup_loss(opt, net, images, labels, lam)
        else:
            loss = plain_loss(opt, net, images, labels)
        return loss * state.scale, (loss, net.moments)

    gradients, (loss, moments) = jax.grad(scaled_loss, has_aux=True)(state.weights)
    gradients = lax.pmean(gradients, RANKS)
    good, scale, good_steps = True, state.scale, state.good_steps
    if opt.precision == "amp":
        good = jnp.all(jnp.stack([jnp.isfinite(gradient).all() for gradient in gradients.values()]))
        if opt.loss_scale == "dynamic":
            scale, good_steps = rescaled(scale, good_steps, good)
    is_lars = opt.recipe.optimizer == "lars"
    weights, momenta = {}, {}
    for name, weight in state.weights.items():
        gradient = gradients[name] / state.scale
        if is_lars:
            gradient = apply_lars(opt.recipe, weight, gradient, rate)
        elif tensors.is_decayed(name):
            gradient += opt.recipe.weight_decay * weight
        momentum = opt.recipe.momentum * state.momenta[name] + gradient
        momenta[name] = jnp.where(good, momentum, state.momenta[name])
        weights[name] = jnp.where(good, weight - (momentum if is_lars else rate * momentum), weight)
    share = recipe.BATCH_NORM_MOMENTUM
    statistics = {name: (1 - share) * old + share * moments[name] for name, old in state.statistics.items()}
    return State(weights, momenta, statistics, scale, good_steps), loss[None]


def logits(opt, net, images):
    return resnet50(net, images.astype(HALF.get(opt.precision, jnp.float32))).astype(jnp.float32)


def plain_loss(opt, net, images, labels):
    return smoothed_cross_entropy(logits(opt, net, images), labels, opt.recipe.label_smoothing)


def mixup_loss(opt, net, images, labels, lam):
    """Return the cross-entropy of a mixup batch (Zhang et al. 2018)."""
    scores, smoothing = logits(opt, net, mixup.mix(images, images[::-1], lam)), opt.recipe.label_smoothing
    own, other = (smoothed_cross_entropy(scores, target, smoothing) for target in (labels, labels[::-1]))
    return mixup.mix(own, other, lam)


def smoothed_cross_entropy(logits, labels, smoothing):
    logarithms = jax.nn.log_softmax(logits)
    of_label = jnp.take_along_axis(logarithms, labels[:, None], axis=1)
    return -(1 - smoothing) * of_label.mean() - smoothing * logarithms.mean()


def apply_lars(by, weight, gradient, rate):
    """Scale a layer's gradient by the rate and its LARS trust ratio (You et al. 2017)."""
    if lars.is_excluded(weight.ndim):
        return rate * gradient
    weight_norm, gradient_norm = jnp.linalg.norm(weight.ravel()), jnp.linalg.norm(gradient.ravel())
    ratio = lars.trust_ratio(weight_norm, gradient_norm, by.trust, by.weight_decay)
    ratio = jnp.where((weight_norm > 0) & (gradient_norm > 0), ratio, 1.0)
    return rate * ratio * (gradient + by.weight_decay * weight)


def count(opt, state, images, labels):
    """Count how many are correct, and correct within five, by the running statistics."""
    net = Pass(state.weights, state.statistics, opt.layout, training=False)
    best = lax.top_k(logits(opt, net, images), 5)[1]
    correct = best == labels[:, None]
    return jnp.stack([correct[:, 0].sum(), correct.sum()])


def rescaled(scale, good_steps, good):
    """Half the loss scale after a gradient that is not finite, twice after so many that are."""
    due = good_steps + 1 == loss_scale.GROWTH_STEPS
    grown = jnp.where(due, scale * 2, scale)
    return jnp.where(good, grown, scale / 2), jnp.where(good & ~due, good_steps + 1, 0)


# Main


class Training(CommonTraining):
    """The verbs of the loop; see `common/training.py`."""

    def __init__(self, opt):
        self.opt = opt
        mesh = set_up(opt)
        self.device = jax.local_devices()[0]
        self.all, self.own = NamedSharding(mesh, P()), NamedSharding(mesh, P(RANKS))
        self.run_step, self.count = compiled(opt, mesh)
        self.gather = jax.jit(lambda spread: spread, out_shardings=self.all)
        if opt.world_size > 1:
            # Gloo waits 30 s for a rank at the first collective, and one may take longer to compile its step.
            self.total([0.0])
        self.losses = probe.LossClock(lambda loss: loss.item(), name="jax") if opt.device == "cuda" else None
        self.load(build_model(opt))

    def batches(self):
        return batches(self.opt, self.own)

    def place(self, images, labels):
        return place(self.opt, self.own, images, labels)

    def feed(self, loaded):
        return normalise(self.opt, self.own, loaded)

    def step(self, images, labels, rate, lam=1.0):
        self.state, loss = self.run_step(self.state, images, labels, np.float32(rate), np.float32(lam))
        return loss

    def read(self, loss):
        mine = loss.addressable_data(0)
        mine.copy_to_host_async()
        return self.losses.read(mine) if self.losses else mine.item

    def evaluate(self, images, labels):
        mine = self.count(self.state, images, labels).addressable_data(0)
        mine.copy_to_host_async()
        return functools.partial(np.asarray, mine)

    def total(self, numbers):
        # JAX has no float64 unless all is: it carries their bits.
        own = np.array([numbers], np.float64).view(np.uint32)
        of_all = self.gather(jax.make_array_from_process_local_data(self.own, own))
        return np.array(of_all.addressable_data(0)).view(np.float64).sum(axis=0).tolist()

    def parameters(self):
        return sum(weight.size for weight in self.state.weights.values())

    def load(self, values, momenta=None, rest=None):
        put = jax.make_array_from_process_local_data
        trained = {name: value for name, value in values.items() if not tensors.is_statistic(name)}
        momenta = momenta or {name: np.zeros_like(value) for name, value in trained.items()}
        rest = rest or {"scale": loss_scale.initial(self.opt), "good_steps": 0}
        self.state = State(
            weights={name: put(self.all, value) for name, value in trained.items()},
            momenta={name: put(self.all, momenta[name]) for name in trained},
            statistics={name: put(self.own, values[name]) for name in values if name not in trained},
            scale=put(self.all, np.float32(rest["scale"])),
            good_steps=put(self.all, np.int32(rest["good_steps"])),
        )

    def tensors(self):
        return on_host({**self.state.weights, **self.state.statistics})

    def momenta(self):
        return on_host(self.state.momenta)

    def rest(self):
        return on_host({"scale": self.state.scale, "good_steps": self.state.good_steps})

    def clock(self):
        return self.losses

    def device_memory(self):
        return self.device.memory_stats()["peak_bytes_in_use"]

    def device_name(self):
        return self.device.device_kind

    def peak_flops(self):
        side = 16384 if self.opt.device == "cuda" else 1024  # large: the host waits for each product
        kind = HALF.get(self.opt.precision, jnp.float32)
        a, b = (jax.random.normal(jax.random.key(seed), (side, side), kind) for seed in range(2))
        product = jax.jit(jnp.matmul)
        return peaks.peak_flops(lambda: product(a, b).block_until_ready(), side)

    def peak_bandwidth(self):
        # Large, as above; but it must fit beside a step that fills the memory.
        size, copies = (2**28, peaks.COPIES) if self.opt.device == "cuda" else (2**25, 1)
        source, turned = jnp.zeros(size), jax.jit(jnp.negative)

        def turn():
            functools.reduce(lambda array, _: turned(array), range(copies), source).block_until_ready()

        return 2 * copies * source.nbytes / peaks.shortest(turn)

    def close(self):
        if self.opt.world_size > 1:
            jax.distributed.shutdown()


def on_host(named):
    # Copied: on the CPU an array could share the memory that the next step writes.
    return {name: np.array(value.addressable_data(0)) for name, value in named.items()}


def set_up(opt):
    """Return the mesh of one device for each rank, with their precision and threads set."""
    configure = jax.config.update
    configure("jax_platforms", opt.device)
    configure("jax_cuda_visible_devices", str(opt.local_rank))
    configure("jax_default_matmul_precision", FLOAT32.get(opt.precision))
    configure("jax_cpu_enable_async_dispatch", False)  # a step on the CPU is over when its call returns
    if opt.device == "cpu" and "OMP_NUM_THREADS" in os.environ:
        os.environ.setdefault("PJRT_NPROC", os.environ["OMP_NUM_THREADS"])  # the name that XLA heeds
    if opt.world_size > 1:
        configure("jax_cpu_collectives_implementation", "gloo")
        configure("jax_enable_preemption_service", False)  # or a rank would outlive SIGTERM
        coordinator = "{MASTER_ADDR}:{MASTER_PORT}".format(**os.environ)
        jax.distributed.initialize(
            coordinator,
            coordinator_bind_address=coordinator if own_address() else None,  # else at every address
            num_processes=opt.world_size,
            process_id=opt.rank,
            local_device_ids=[opt.local_rank],
        )
        if opt.device == "cpu" and own_address():
            meet_at(own_address())
    return jax.make_mesh((opt.world_size,), (RANKS,))


def meet_at(address):
    """Has gloo listen here. It would ask for the host's name, and JAX itself has no other way to tell it."""
    from jax._src import distributed, xla_bridge
    from jax._src.lib import _jax

    if not hasattr(xla_bridge, "register_backend_factory") or not hasattr(_jax, "make_gloo_tcp_collectives"):
        return  # another JAX than ours: it meets by the host's name then, as it would without us

    def cpu_client():
        client = distributed.global_state.client
        return xla_bridge.make_cpu_client(_jax.make_gloo_tcp_collectives(client, hostname=address))

    xla_bridge.register_backend_factory("cpu", cpu_client, priority=0, fail_quietly=False)


def check(opt):
    """Refuse what JAX cannot do on this machine; asked before anything starts."""
    capabilities = cuda_capabilities() if opt.device == "cuda" else []
    refusals.check("jax", opt, min(capabilities, default=None))


def facts():
    return {
        "framework_version": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "cuda": cuda_version(),
        "cuda_devices": len(cuda_capabilities()),
    }


def cuda_version():
    """That JAX's plugin was built for, None where it is not installed."""
    plugins = (plugin.name for plugin in metadata.entry_points(group="jax_plugins"))
    return next((name.removeprefix("xla_cuda") for name in plugins if name.startswith("xla_cuda")), None)


def cuda_capabilities():
    """Of each GPU; asked of the driver, for once JAX itself has been asked it can join no other ranks."""
    if cuda_version() is None:
        return []
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
    count, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return []
    capabilities = []
    for device in range(count.value):
        driver.cuDeviceGetAttribute(ctypes.byref(major), 75, device)  # COMPUTE_CAPABILITY_MAJOR
        driver.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
        capabilities.append((major.value, minor.value))
    return capabilities


if __name__ == "__main__":
    program.main("jax", Training, check, facts)
