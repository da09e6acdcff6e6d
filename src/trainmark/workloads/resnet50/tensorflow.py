"""Training ResNet-50 v1.5 in TensorFlow: the model, the data, the step, main."""

import itertools
import json
import os
import signal

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read by the import; below it, pages of start-up notes
os.environ.setdefault("TF_GPU_THREAD_MODE", "gpu_private")  # who launches kernels does not wait for others

import tensorflow as tf

from trainmark import probe
from trainmark.workloads.common import peaks
from trainmark.workloads.common.optimizer import lars, loss_scale, mixup
from trainmark.workloads.common.training import Training as CommonTraining
from trainmark.workloads.images import augment
from trainmark.workloads.resnet50.models.tensorflow import (
    Layout,
    ResNet50,
    canonical,
    dialect,
    named_variables,
    own,
)
from trainmark.workloads.resnet50.shared import program, recipe, refusals, synthetic, tensors

details = tf.config.experimental.get_device_details

HALF = {"amp": tf.float16, "bf16": tf.bfloat16}
BYTES_PER_PACK = 32 * 2**20  # gradients travel in packs, the first while the last are still computed

# The model


def build_model(opt):
    tf.random.set_seed(opt.seed)  # the same weights on every rank
    return ResNet50(Layout(opt.layout, explicit_padding=opt.device == "cuda" and not opt.compile))


# The data


def batches(opt):
    """Return an endless stream: one batch that stays on the device, or several copied to it step by step."""
    if opt.data == "synthetic":
        return itertools.repeat(place(opt, *synthetic.batches(opt, 1)[0]))
    with tf.device("CPU:0"):
        pool = [place(opt, *batch) for batch in synthetic.batches(opt, synthetic.BATCHES)]
        if opt.device == "cpu":
            return itertools.cycle(pool)
        images, labels = (tf.stack(part) for part in zip(*pool))
        dataset = tf.data.Dataset.from_tensor_slices((images, labels)).repeat()
    return prefetched(dataset)


def place(opt, images, labels):
    """Copy host arrays, images as NCHW, to the device in the layout that was asked for."""
    if opt.layout == "NHWC":
        images = images.transpose(0, 2, 3, 1)
    return tf.identity(images), tf.identity(labels)


def normalise(opt, loaded):
    """Copy a loader's batches to the device; there, and not before, pixels become float32."""
    for pixels, labels in prefetch(opt, loaded) if opt.device == "cuda" else loaded:
        images = (tf.cast(pixels, tf.float32) - augment.MEAN) / augment.DEVIATION
        yield images if opt.layout == "NHWC" else tf.transpose(images, (0, 3, 1, 2)), tf.identity(labels)


def prefetch(opt, loaded):
    """Copy batches to the device, each while those before are in use."""
    side = opt.image_size
    kinds = tf.TensorSpec((opt.batch, side, side, 3), tf.uint8), tf.TensorSpec((opt.batch,), tf.int64)
    # Copied: TensorFlow would share the memory that the loader soon writes anew.
    dataset = tf.data.Dataset.from_generator(
        lambda: (tuple(part.copy() for part in batch) for batch in loaded), output_signature=kinds
    )
    return prefetched(dataset)


def prefetched(dataset):
    return iter(dataset.apply(tf.data.experimental.prefetch_to_device("GPU:0", buffer_size=2)))


# The step


class Step:
    """Forward, backward and update of one batch on one rank."""

    def __init__(self, opt, model):
        self.world_size, self.model, self.recipe = opt.world_size, model, opt.recipe
        self.is_lars = opt.recipe.optimizer == "lars"
        self.dtype = HALF.get(opt.precision, tf.float32)
        named = named_variables(model)
        self.trained = {name: named[name] for name in named if not tensors.is_statistic(name)}
        self.momenta = {name: tf.Variable(tf.zeros_like(value)) for name, value in self.trained.items()}
        self.scale = LossScale(opt) if opt.precision == "amp" else None
        if opt.compile:  # both sides of the exchange between the ranks, which XLA leaves to TensorFlow
            self.differentiate = tf.function(self.differentiate, jit_compile=True)
            self.apply_gradients = tf.function(self.apply_gradients, jit_compile=True)
            self.count = tf.function(self.count, jit_compile=True)

    def __call__(self, images, labels, rate, lam):
        loss, gradients = self.differentiate(images, labels, lam)
        if self.world_size > 1:
            replica = tf.distribute.get_replica_context()
            gradients = replica.all_reduce(tf.distribute.ReduceOp.MEAN, gradients)
        self.apply_gradients(gradients, rate)
        return loss

    def differentiate(self, images, labels, lam):
        with tf.GradientTape() as tape:
            loss = self.mixup_loss(images, labels, lam) if self.recipe.mixup else self.loss(images, labels)
            scaled = loss if self.scale is None else loss * self.scale.value
        return loss, tape.gradient(scaled, list(self.trained.values()))

    def loss(self, images, labels):
        return smoothed_cross_entropy(self.logits(images), labels, self.recipe.label_smoothing)

    def mixup_loss(self, images, labels, lam):
        """Return the cross-entropy of a mixup batch (Zhang et al. 2018)."""
        logits = self.logits(mixup.mix(images, tf.reverse(images, [0]), lam))
        targets, smoothing = (labels, tf.reverse(labels, [0])), self.recipe.label_smoothing
        own, other = (smoothed_cross_entropy(logits, target, smoothing) for target in targets)
        return mixup.mix(own, other, lam)

    def logits(self, images, training=True):
        return tf.cast(self.model(tf.cast(images, self.dtype), training), tf.float32)

    def apply_gradients(self, gradients, rate):
        momentum = tf.constant(self.recipe.momentum)
        if self.scale is not None:
            gradients, finite = self.scale.remove(gradients)
        if self.is_lars:
            gradients, rate = list(self.apply_lars(gradients, rate)), tf.constant(1.0)
        if self.scale is not None:
            # A step that overflowed leaves all as it was; a branch would make the host wait for the answer.
            rate, momentum = tf.where(finite, rate, 0.0), tf.where(finite, momentum, 1.0)
        for (name, variable), gradient in zip(self.trained.items(), gradients):
            if tensors.is_decayed(name) and not self.is_lars:
                gradient += self.recipe.weight_decay * variable
            if self.scale is not None:
                gradient = tf.where(finite, gradient, 0.0)
            # The optimisers of Keras fold the rate into the buffer, which is another thing when it changes.
            buffer = self.momenta[name].handle
            tf.raw_ops.ResourceApplyMomentum(
                var=variable.handle, accum=buffer, lr=rate, grad=gradient, momentum=momentum
            )

    def apply_lars(self, gradients, rate):
        """Scale each layer's gradient by the rate and its LARS trust ratio (You et al. 2017)."""
        trust, decay = self.recipe.trust, self.recipe.weight_decay
        for variable, gradient in zip(self.trained.values(), gradients):
            if lars.is_excluded(variable.shape.rank):
                yield rate * gradient
                continue
            weight_norm, gradient_norm = tf.norm(variable), tf.norm(gradient)
            ratio = lars.trust_ratio(weight_norm, gradient_norm, trust, decay)
            ratio = tf.where((weight_norm > 0) & (gradient_norm > 0), ratio, 1.0)
            yield rate * ratio * (gradient + decay * variable)

    def count(self, images, labels):
        """Count how many are correct, and correct within five, by the running statistics."""
        best = tf.math.top_k(self.logits(images, training=False), 5).indices
        correct = tf.cast(best, labels.dtype) == labels[:, None]
        return tf.stack([tf.math.count_nonzero(correct[:, 0]), tf.math.count_nonzero(correct)])


class LossScale:
    """Static, or halved after a step that overflows and doubled after so many that do not."""

    def __init__(self, opt):
        self.dynamic = opt.loss_scale == "dynamic"
        self.first = loss_scale.initial(opt)
        self.value, self.good_steps = own(self.first), own(0)

    def remove(self, gradients):
        """The gradients of the loss itself, and whether all are finite."""
        finite = tf.math.is_finite(tf.linalg.global_norm(gradients))
        unscaled = [gradient / self.value for gradient in gradients]
        if self.dynamic:
            good_steps = self.good_steps + 1
            due = good_steps == loss_scale.GROWTH_STEPS
            self.value.assign(self.value * tf.where(finite, tf.where(due, 2.0, 1.0), 0.5))
            self.good_steps.assign(tf.where(finite & ~due, good_steps, 0))
        return unscaled, finite

    def load(self, rest):
        self.value.assign(rest.get("scale", self.first))
        self.good_steps.assign(int(rest.get("good_steps", 0)))

    def rest(self):
        return {"scale": float(self.value.numpy()), "good_steps": int(self.good_steps.numpy())}


def smoothed_cross_entropy(logits, labels, smoothing):
    """Mean over the batch; the target is the label, mixed with the uniform distribution over all classes."""
    rest = smoothing / recipe.CLASSES
    target = tf.one_hot(labels, recipe.CLASSES, 1 - smoothing + rest, rest)
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(target, logits))


# Main


class Training(CommonTraining):
    """The verbs of the loop; see `common/training.py`."""

    def __init__(self, opt):
        self.opt = opt
        self.strategy = set_up(opt)
        with self.strategy.scope():
            self.update = Step(opt, build_model(opt))
        self.run_step = tf.function(lambda *batch: self.strategy.run(self.update, batch))
        self.count = tf.function(lambda *batch: self.strategy.run(self.update.count, batch))
        # TensorFlow has no events, and reads of losses do not queue: each has a thread.
        self.losses = probe.LossClock(lambda loss: float(loss.numpy()), probe.MOST_PENDING + 2)

    def batches(self):
        return batches(self.opt)

    def place(self, images, labels):
        return place(self.opt, images, labels)

    def feed(self, loaded):
        return normalise(self.opt, loaded)

    def step(self, images, labels, rate, lam=1.0):
        with tf.device("CPU:0"):  # put on a GPU at once, they would wait for all that the GPU has to do
            rate, lam = tf.constant(rate, tf.float32), tf.constant(lam, tf.float32)
        return self.run_step(images, labels, rate, lam)

    def evaluate(self, images, labels):
        return self.count(images, labels).numpy

    def total(self, numbers):
        added = tf.constant(numbers, tf.float64)
        if self.opt.world_size > 1:
            added = self.strategy.reduce(tf.distribute.ReduceOp.SUM, added, axis=None)
        return added.numpy().tolist()

    def read(self, loss):
        return self.losses.read(loss) if self.opt.device == "cuda" else loss.numpy

    def parameters(self):
        return sum(variable.shape.num_elements() for variable in self.update.model.trainable_variables)

    def load(self, values, momenta=None, rest=None):
        for name, variable in named_variables(self.update.model).items():
            variable.assign(dialect(values[name]))
        for name, momentum in self.update.momenta.items():
            momentum.assign(dialect(momenta[name]) if momenta else tf.zeros_like(momentum))
        if self.update.scale is not None:
            self.update.scale.load(rest or {})

    def tensors(self):
        return on_host(named_variables(self.update.model))

    def momenta(self):
        return on_host(self.update.momenta)

    def rest(self):
        return {} if self.update.scale is None else self.update.scale.rest()

    def clock(self):
        return self.losses if self.opt.device == "cuda" else None

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


def on_host(named):
    return {name: canonical(variable.numpy()) for name, variable in named.items()}


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


def check(opt):
    """Refuse what TensorFlow cannot do on this machine; asked before anything starts."""
    gpus = tf.config.list_physical_devices("GPU") if opt.device == "cuda" else []
    refusals.check("tensorflow", opt, details(gpus[0])["compute_capability"] if gpus else None)


def facts():
    build = tf.sysconfig.get_build_info()
    return {
        "framework_version": tf.__version__,
        "cuda": build.get("cuda_version"),
        "cudnn": build.get("cudnn_version"),
        "cuda_devices": len(tf.config.list_physical_devices("GPU")),
    }


if __name__ == "__main__":
    program.main("tensorflow", Training, check, facts)
