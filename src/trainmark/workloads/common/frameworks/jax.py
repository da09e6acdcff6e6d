"""JAX's part of every training: the device and its ranks, precision, clock, peaks, copies, facts."""

import ctypes
import functools
import itertools
import os
from importlib import metadata

import jax
import jaxlib
import numpy as np
from jax import numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from trainmark import probe
from trainmark.workloads.common import optimizer, peaks
from trainmark.workloads.common.own_address import own_address
from trainmark.workloads.common.training import Training as CommonTraining

HALF = {"amp": jnp.float16, "bf16": jnp.bfloat16}
# What XLA may make of float32 operands in products and convolutions; on NVIDIA its default is TF32.
FLOAT32 = {"fp32": "highest", "tf32": "tensorfloat32"}
RANKS = "ranks"  # the one axis of the mesh: a device of each rank


class Training(CommonTraining):
    """The verbs of `common/training.py` that do not depend on the model; a family's class has the others."""

    def __init__(self, opt):
        self.opt = opt
        self.mesh = set_up(opt)
        self.device = jax.local_devices()[0]
        self.all, self.own = NamedSharding(self.mesh, P()), NamedSharding(self.mesh, P(RANKS))
        self.gather = jax.jit(lambda spread: spread, out_shardings=self.all)
        if opt.world_size > 1:
            # Gloo waits 30 s for a rank at the first collective, and one may take longer to compile its step.
            self.total([0.0])
        self.losses = probe.LossClock(lambda loss: loss.item(), name="jax") if opt.device == "cuda" else None

    def read(self, loss):
        mine = loss.addressable_data(0)
        mine.copy_to_host_async()
        return self.losses.read(mine) if self.losses else mine.item

    def arranged(self, *arrays):
        """Return host arrays in the layout that was asked for."""
        return arrays

    def place(self, *arrays):
        return tuple(put(self.own, part) for part in self.arranged(*arrays))

    def cycled(self, batches):
        host = self.own.with_memory_kind("pinned_host") if self.opt.device == "cuda" else self.own
        placed = [tuple(put(host, part) for part in self.arranged(*batch)) for batch in batches]
        if self.opt.device == "cpu":
            return itertools.cycle(placed)
        return prefetch(jax.device_put(batch, self.own) for batch in itertools.cycle(placed))

    def total(self, numbers):
        # JAX has no float64 unless all is: it carries their bits.
        own = np.array([numbers], np.float64).view(np.uint32)
        of_all = self.gather(jax.make_array_from_process_local_data(self.own, own))
        return np.array(of_all.addressable_data(0)).view(np.float64).sum(axis=0).tolist()

    def clock(self):
        return self.losses

    def profiler(self):
        from trainmark.inside.profiler import jax as profiler

        return profiler.Profiler()

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


def put(sharding, array):
    """Return a rank's part of an array as a device array of all ranks."""
    return jax.make_array_from_process_local_data(sharding, array)


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
    return jax.make_mesh((opt.world_size,), (RANKS,), axis_types=(AxisType.Auto,))


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


def rescaled(scale, good_steps, good):
    """Half the loss scale after a gradient that is not finite, twice after so many that are."""
    due = good_steps + 1 == optimizer.LOSS_SCALE_GROWTH_STEPS
    grown = jnp.where(due, scale * 2, scale)
    return jnp.where(good, grown, scale / 2), jnp.where(good & ~due, good_steps + 1, 0)


def prefetch(source):
    """Give batches to the device, each on its way there while the one before is in use."""
    arriving = next(source, None)
    for following in source:
        yield arriving
        arriving = following
    if arriving is not None:
        yield arriving


def machine(opt):
    """Return what the tables of refusals ask of this machine: the capability of the least of the GPUs."""
    return {"capability": min(cuda_capabilities(), default=None) if opt.device == "cuda" else None}


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
