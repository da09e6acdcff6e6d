"""TensorFlow's part of every training: device and ranks, loss scale, reading of losses, peaks, facts."""

import itertools
import json
import os
import signal

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read by the import; below it, pages of start-up notes
os.environ.setdefault("TF_GPU_THREAD_MODE", "gpu_private")  # who launches kernels does not wait for others

import tensorflow as tf

from trainmark import probe
from trainmark.workloads.common import optimizer, peaks
from trainmark.workloads.common.training import Training as CommonTraining

details = tf.config.experimental.get_device_details

HALF = {"amp": tf.float16, "bf16": tf.bfloat16}
BYTES_PER_PACK = 32 * 2**20  # gradients travel in packs, the first while the last are still computed


class Training(CommonTraining):
    """The verbs of `common/training.py` that do not depend on the model; a family's class has the others."""

    def __init__(self, opt):
        self.opt = opt
        self.strategy = set_up(opt)
        # TensorFlow has no events, and reads of losses do not queue: each has a thread.
        self.losses = probe.LossClock(lambda loss: float(loss.numpy()), probe.MOST_PENDING + 2)

    def replicated(self, function, eager=False):
        """Return a function of tensors as the strategy runs it: in one graph, unless `eager`."""

        def run(*inputs):
            return self.strategy.run(function, inputs)

        return run if eager else tf.function(run)

    def cycled(self, batches):
        with tf.device("CPU:0"):
            pool = [self.place(*batch) for batch in batches]
            if self.opt.device == "cpu":
                return itertools.cycle(pool)
            stacked = tuple(tf.stack(part) for part in zip(*pool))
            return prefetched(tf.data.Dataset.from_tensor_slices(stacked).repeat())

    def total(self, numbers):
        added = tf.constant(numbers, tf.float64)
        if self.opt.world_size > 1:
            added = self.strategy.reduce(tf.distribute.ReduceOp.SUM, added, axis=None)
        return added.numpy().tolist()

    def read(self, loss):
        return self.losses.read(loss) if self.opt.device == "cuda" else loss.numpy

    def clock(self):
        return self.losses if self.opt.device == "cuda" else None

    def profiler(self):
        from trainmark.inside.profiler import tensorflow as profiler

        return profiler.Profiler()

    def device_memory(self):
        return tf.config.experimental.get_memory_info("GPU:0")["peak"]

    def gpu_name(self):
        return details(tf.config.get_visible_devices("GPU")[0])["device_name"]

    def peak_flops(self):
        side = 16384 if self.opt.device == "cuda" else 1024  # large: the host waits for each product
        kind = HALF.get(self.opt.precision, tf.float32)
        a, b = (tf.cast(tf.random.normal((side, side)), kind) for _ in range(2))
        # One element that comes back is the wait for all.
        return peaks.peak_flops(lambda: tf.matmul(a, b)[0, 0].numpy(), side)

    def close(self):
        if self.opt.world_size > 1:
            # Whoever left early would be taken for dead by the others.
            self.strategy.reduce(tf.distribute.ReduceOp.SUM, tf.zeros(()), axis=None).numpy()


def set_up(opt):
    """Return the strategy that spreads the step over the ranks, with device, precision and threads set."""
    gpus = tf.config.list_physical_devices("GPU")
    tf.config.set_visible_devices(gpus[opt.local_rank] if opt.device == "cuda" else [], "GPU")
    tf.config.experimental.enable_tensor_float_32_execution(opt.precision != "fp32")
    tf.config.optimizer.set_experimental_options({"layout_optimizer": False})  # the layout asked for stays
    threads = int(os.environ.get("OMP_NUM_THREADS", "0"))  # which it does not heed; zero: as it likes
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    if opt.world_size == 1:
        return tf.distribute.get_strategy()
    workers = os.environ["TRAINMARK_PEERS"].split(",")
    task = {"type": "worker", "index": opt.rank}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": task})
    by = tf.distribute.experimental.CommunicationImplementation
    strategy = tf.distribute.MultiWorkerMirroredStrategy(
        communication_options=tf.distribute.experimental.CommunicationOptions(
            implementation=by.NCCL if opt.device == "cuda" else by.RING, bytes_per_pack=BYTES_PER_PACK
        )
    )
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the strategy takes it for a mere notice, and goes on
    return strategy


def mean_over_ranks(opt, gradients):
    """Return the ranks' mean of the gradients, inside what the strategy runs."""
    if opt.world_size == 1:
        return gradients
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, gradients)


def scalar(value):
    """Return a float as a tensor on the host: put on a GPU at once, it would wait for all that is queued."""
    with tf.device("CPU:0"):
        return tf.constant(value, tf.float32)


def own(value):
    """A variable that each rank keeps to itself: left to itself, a strategy would average them."""
    return tf.Variable(
        value,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
    )


def prefetch(batches):
    """Copy a loader's batches of arrays to the GPU, each while those before are in use."""
    # Copied: TensorFlow would share the memory that the loader soon writes anew.
    copied = (tuple(part.copy() for part in batch) for batch in batches)
    first = next(copied, None)
    if first is None:
        return iter(())
    kinds = tuple(tf.TensorSpec(part.shape, part.dtype) for part in first)
    stream = itertools.chain([first], copied)
    return prefetched(tf.data.Dataset.from_generator(lambda: stream, output_signature=kinds))


def prefetched(dataset):
    return iter(dataset.apply(tf.data.experimental.prefetch_to_device("GPU:0", buffer_size=2)))


class LossScale:
    """Static, or halved after a step that overflows and doubled after so many that do not."""

    def __init__(self, opt):
        self.dynamic = opt.loss_scale == "dynamic"
        self.first = optimizer.initial_loss_scale(opt)
        self.value, self.good_steps = own(self.first), own(0)

    def remove(self, gradients):
        """The gradients of the loss itself, and whether all are finite."""
        finite = tf.math.is_finite(tf.linalg.global_norm(gradients))
        unscaled = [gradient / self.value for gradient in gradients]
        self.update(finite)
        return unscaled, finite

    def update(self, finite):
        """Follow a step whose gradients were all `finite`, or not."""
        if self.dynamic:
            good_steps = self.good_steps + 1
            due = good_steps == optimizer.LOSS_SCALE_GROWTH_STEPS
            self.value.assign(self.value * tf.where(finite, tf.where(due, 2.0, 1.0), 0.5))
            self.good_steps.assign(tf.where(finite & ~due, good_steps, 0))

    def load(self, rest):
        self.value.assign(rest.get("scale", self.first))
        self.good_steps.assign(int(rest.get("good_steps", 0)))

    def rest(self):
        return {"scale": float(self.value.numpy()), "good_steps": int(self.good_steps.numpy())}


def machine(opt):
    """Return what the tables of refusals ask of this machine."""
    gpus = tf.config.list_physical_devices("GPU") if opt.device == "cuda" else []
    return {"capability": details(gpus[0])["compute_capability"] if gpus else None}


def facts():
    build = tf.sysconfig.get_build_info()
    return {
        "framework_version": tf.__version__,
        "cuda": build.get("cuda_version"),
        "cudnn": build.get("cudnn_version"),
        "cuda_devices": len(tf.config.list_physical_devices("GPU")),
    }
