"""ResNet-50 v1.5 in TensorFlow: the model, the data, the step, main."""

import itertools
import json
import os
import signal
from typing import NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read by the import; below it, pages of start-up notes
os.environ.setdefault("TF_GPU_THREAD_MODE", "gpu_private")  # who launches kernels does not wait for others

import tensorflow as tf

from trainmark import probe
from trainmark.workloads.resnet50.shared import clocks, loop, options, recipe, synthetic, tensors

details = tf.config.experimental.get_device_details

HALF = {"amp": tf.float16, "bf16": tf.bfloat16}
FIRST_SCALE = 2.0**16
GROWTH_INTERVAL = 2000  # steps without overflow after which the loss scale doubles
BYTES_PER_PACK = 32 * 2**20  # gradients travel in packs, the first while the last are still computed

# The model


class Bottleneck(tf.Module):
    def __init__(self, inputs, width, stride, layout):
        super().__init__()
        outputs = width * recipe.EXPANSION
        self.conv1, self.bn1 = Conv(inputs, width, 1, 1, layout), BatchNorm(width, layout)
        # v1.5: the stride is in the second.
        self.conv2, self.bn2 = Conv(width, width, 3, stride, layout), BatchNorm(width, layout)
        self.conv3, self.bn3 = Conv(width, outputs, 1, 1, layout), BatchNorm(outputs, layout)
        self.shortcut = []
        if stride != 1 or inputs != outputs:
            self.shortcut = [Conv(inputs, outputs, 1, stride, layout), BatchNorm(outputs, layout)]

    def __call__(self, x):
        y = tf.nn.relu(self.bn1(self.conv1(x)))
        y = tf.nn.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        for layer in self.shortcut:
            x = layer(x)
        return tf.nn.relu(y + x)


class ResNet50(tf.Module):
    def __init__(self, layout):
        super().__init__()
        self.stem = [Conv(3, 64, 7, 2, layout), BatchNorm(64, layout), tf.nn.relu, MaxPool(layout)]
        self.blocks, channels = [], 64
        for stage, (depth, width) in enumerate(recipe.STAGES):
            for block in range(depth):
                stride = 2 if block == 0 and stage > 0 else 1
                self.blocks.append(Bottleneck(channels, width, stride, layout))
                channels = width * recipe.EXPANSION
        self.classifier = Linear(channels, recipe.CLASSES)
        self.layout = layout

    def __call__(self, x):
        for layer in itertools.chain(self.stem, self.blocks):
            x = layer(x)
        return self.classifier(tf.reduce_mean(x, self.layout.pixels()))


class Conv(tf.Module):
    def __init__(self, inputs, outputs, kernel, stride, layout):
        super().__init__()
        self.weight = normal((kernel, kernel, inputs, outputs), variance=2 / (kernel**2 * inputs))
        self.kernel, self.stride, self.layout = kernel, stride, layout

    def __call__(self, x):
        padding = "SAME"
        if self.kernel > 1 and self.stride > 1:
            x, padding = bordered(x, self.kernel // 2, 0.0, self.layout)
        weight = tf.cast(self.weight, x.dtype)
        return tf.nn.conv2d(x, weight, self.stride, padding, data_format=self.layout.name)


class BatchNorm(tf.Module):
    def __init__(self, channels, layout):
        super().__init__()
        self.scale, self.bias = tf.Variable(tf.ones(channels)), tf.Variable(tf.zeros(channels))
        self.mean, self.variance = own(tf.zeros(channels)), own(tf.ones(channels))
        self.layout = layout

    def __call__(self, x):
        # The bare operation: tf.nn's would raise epsilon, and leave the running statistics to further ones.
        normed = tf.raw_ops.FusedBatchNormV3(
            x=x,
            scale=self.scale,
            offset=self.bias,
            mean=self.mean,
            variance=self.variance,
            epsilon=recipe.BATCH_NORM_EPSILON,
            exponential_avg_factor=recipe.BATCH_NORM_MOMENTUM,
            data_format=self.layout.name,
        )
        self.mean.assign(normed.batch_mean)
        self.variance.assign(normed.batch_variance)
        return normed.y


class MaxPool(tf.Module):
    def __init__(self, layout):
        super().__init__()
        self.layout = layout

    def __call__(self, x):
        x, padding = bordered(x, 1, float("-inf"), self.layout)
        return tf.nn.max_pool2d(x, 3, 2, padding, data_format=self.layout.name)


class Linear(tf.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = normal((inputs, outputs), variance=1 / inputs)
        self.bias = tf.Variable(tf.zeros(outputs))

    def __call__(self, x):
        return x @ tf.cast(self.weight, x.dtype) + tf.cast(self.bias, x.dtype)


def normal(shape, variance):
    return tf.Variable(tf.random.normal(shape, stddev=variance**0.5))


def own(value):
    """A variable that each rank keeps to itself: left to itself, a strategy would average them."""
    return tf.Variable(
        value,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
    )


class Layout(NamedTuple):
    """NCHW or NHWC, and whether an operation pads by itself or finds the padding on its input.

    Where convolutions pad by themselves, their gradients on the CPU go without oneDNN and take up to forty
    times as long. In XLA a pooling cannot.
    """

    name: str
    explicit_padding: bool

    def pixels(self):
        """The axes of rows and columns."""
        return [self.name.index("H"), self.name.index("W")]


def bordered(x, width, value, layout):
    """Input and padding of an operation with a stride, where "SAME" would pad one side more."""
    border = [[width, width] if axis in layout.pixels() else [0, 0] for axis in range(4)]
    return (x, border) if layout.explicit_padding else (tf.pad(x, border, constant_values=value), "VALID")


def layers(module):
    """All layers with weights in the order in which they were made; tf.Module would sort them by name."""
    for part in vars(module).values():
        for each in part if isinstance(part, list) else [part]:
            if isinstance(each, (Conv, BatchNorm, Linear)):
                yield each
            elif isinstance(each, tf.Module):
                yield from layers(each)


def build_model(opt):
    tf.random.set_seed(opt.seed)  # the same weights on every rank
    return ResNet50(Layout(opt.layout, explicit_padding=opt.device == "cuda" and not opt.compile))


def named_variables(model):
    """Every variable by its canonical name."""
    found = {}
    for layer, module in zip(tensors.layers(), layers(model)):
        parts = (getattr(module, part) for part in tensors.PARTS[layer.kind])
        found.update(zip(tensors.names(layer), parts))
    return found


def canonical(value):
    """An array in the canonical layout: outputs first, where TensorFlow has them last."""
    return value.transpose({1: (0,), 2: (1, 0), 4: (3, 2, 0, 1)}[value.ndim])


def dialect(value):
    """The reverse."""
    return value.transpose({1: (0,), 2: (1, 0), 4: (2, 3, 1, 0)}[value.ndim])


# The data


def batches(opt):
    """An endless stream: one batch that lives on the device, or several copied to it step by step."""
    if opt.data == "synthetic":
        return itertools.repeat(place(opt, *synthetic.batches(opt, 1)[0]))
    with tf.device("CPU:0"):
        pool = [place(opt, *batch) for batch in synthetic.batches(opt, synthetic.BATCHES)]
        if opt.device == "cpu":
            return itertools.cycle(pool)
        images, labels = (tf.stack(part) for part in zip(*pool))
        dataset = tf.data.Dataset.from_tensor_slices((images, labels)).repeat()
    return iter(dataset.apply(tf.data.experimental.prefetch_to_device("GPU:0", buffer_size=2)))


def place(opt, images, labels):
    """Host arrays, images as NCHW, on the device and in the layout that was asked for."""
    if opt.layout == "NHWC":
        images = images.transpose(0, 2, 3, 1)
    return tf.identity(images), tf.identity(labels)


# The step


class Step:
    """Forward, backward and update of one batch on one rank."""

    def __init__(self, opt, model):
        self.world_size, self.model = opt.world_size, model
        self.dtype = HALF.get(opt.precision, tf.float32)
        named = named_variables(model)
        self.trained = {name: named[name] for name in named if not tensors.is_statistic(name)}
        self.momenta = {name: tf.Variable(tf.zeros_like(value)) for name, value in self.trained.items()}
        self.scale = LossScale(opt.loss_scale) if opt.precision == "amp" else None
        if opt.compile:  # both sides of the exchange between the ranks, which XLA leaves to TensorFlow
            self.differentiate = tf.function(self.differentiate, jit_compile=True)
            self.apply = tf.function(self.apply, jit_compile=True)

    def __call__(self, images, labels, rate):
        loss, gradients = self.differentiate(images, labels)
        if self.world_size > 1:
            replica = tf.distribute.get_replica_context()
            gradients = replica.all_reduce(tf.distribute.ReduceOp.MEAN, gradients)
        self.apply(gradients, rate)
        return loss

    def differentiate(self, images, labels):
        with tf.GradientTape() as tape:
            logits = self.model(tf.cast(images, self.dtype))
            loss = smoothed_cross_entropy(tf.cast(logits, tf.float32), labels)
            scaled = loss if self.scale is None else loss * self.scale.value
        return loss, tape.gradient(scaled, list(self.trained.values()))

    def apply(self, gradients, rate):
        momentum = tf.constant(recipe.MOMENTUM)
        if self.scale is not None:
            gradients, finite = self.scale.remove(gradients)
            # A step that overflowed leaves all as it was; a branch would make the host wait for the answer.
            rate, momentum = tf.where(finite, rate, 0.0), tf.where(finite, momentum, 1.0)
        for (name, variable), gradient in zip(self.trained.items(), gradients):
            if tensors.is_decayed(name):
                gradient += recipe.WEIGHT_DECAY * variable
            if self.scale is not None:
                gradient = tf.where(finite, gradient, 0.0)
            # The optimisers of Keras fold the rate into the buffer, which is another thing when it changes.
            tf.raw_ops.ResourceApplyMomentum(
                var=variable.handle,
                accum=self.momenta[name].handle,
                lr=rate,
                grad=gradient,
                momentum=momentum,
            )


class LossScale:
    """Static, or halved after a step that overflows and doubled after so many that do not."""

    def __init__(self, scale):
        self.dynamic = scale == "dynamic"
        self.value, self.good_steps = own(FIRST_SCALE if self.dynamic else scale), own(0)

    def remove(self, gradients):
        """The gradients of the loss itself, and whether all are finite."""
        finite = tf.math.is_finite(tf.linalg.global_norm(gradients))
        unscaled = [gradient / self.value for gradient in gradients]
        if self.dynamic:
            good_steps = self.good_steps + 1
            due = good_steps == GROWTH_INTERVAL
            self.value.assign(self.value * tf.where(finite, tf.where(due, 2.0, 1.0), 0.5))
            self.good_steps.assign(tf.where(finite & ~due, good_steps, 0))
        return unscaled, finite


def smoothed_cross_entropy(logits, labels):
    """Mean over the batch; the target is the label, mixed with the uniform distribution over all classes."""
    rest = recipe.LABEL_SMOOTHING / recipe.CLASSES
    target = tf.one_hot(labels, recipe.CLASSES, 1 - recipe.LABEL_SMOOTHING + rest, rest)
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(target, logits))


# Main


class Training:
    """The verbs of the shared loop; see `shared/loop.py`."""

    def __init__(self, opt):
        self.opt = opt
        self.strategy = begin(opt)
        with self.strategy.scope():
            self.update = Step(opt, build_model(opt))
        self.take = tf.function(lambda *batch: self.strategy.run(self.update, batch))
        # TensorFlow has no events, and reads of losses do not queue: each has a thread.
        self.losses = clocks.LossClock(lambda loss: float(loss.numpy()), probe.MOST_PENDING + 2)

    def batches(self):
        return batches(self.opt)

    def place(self, images, labels):
        return place(self.opt, images, labels)

    def step(self, images, labels, rate):
        with tf.device("CPU:0"):  # put on a GPU at once, it would wait for all that the GPU has to do
            rate = tf.constant(rate, tf.float32)
        return self.take(images, labels, rate)

    def read(self, loss):
        return self.losses.read(loss) if self.opt.device == "cuda" else loss.numpy

    def parameters(self):
        return sum(variable.shape.num_elements() for variable in self.update.model.trainable_variables)

    def load(self, values):
        for name, variable in named_variables(self.update.model).items():
            variable.assign(dialect(values[name]))
        for momentum in self.update.momenta.values():
            momentum.assign(tf.zeros_like(momentum))

    def tensors(self):
        named = named_variables(self.update.model)
        return {name: canonical(variable.numpy()) for name, variable in named.items()}

    def clock(self):
        return self.losses if self.opt.device == "cuda" else None

    def memory(self):
        if self.opt.device == "cuda":
            return tf.config.experimental.get_memory_info("GPU:0")["peak"]
        return options.process_memory_peak()

    def device_name(self):
        if self.opt.device == "cuda":
            return details(tf.config.get_visible_devices("GPU")[0])["device_name"]
        return "cpu"

    def peak_flops(self):
        side = 16384 if self.opt.device == "cuda" else 1024  # large: the host waits for each product
        kind = HALF.get(self.opt.precision, tf.float32)
        a, b = (tf.cast(tf.random.normal((side, side)), kind) for _ in range(2))
        # One element that comes back is the wait for all.
        return loop.peak_flops(lambda: tf.matmul(a, b)[0, 0].numpy(), side, probe.HostClock())

    def close(self):
        if self.opt.world_size > 1:
            # Whoever left early would be taken for dead by the others.
            self.strategy.reduce(tf.distribute.ReduceOp.SUM, tf.zeros(()), axis=None).numpy()


def begin(opt):
    """The strategy that spreads the step over the ranks, with device, precision and threads set."""
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
    """Refuses what this device cannot do; asked before anything starts."""
    gpus = tf.config.list_physical_devices("GPU")
    capability = None
    if opt.device == "cuda":
        if not gpus:
            raise options.Refusal(
                "TensorFlow sees no CUDA device here; use --device cpu or a CUDA build of TensorFlow."
            )
        capability = details(gpus[0])["compute_capability"]
    options.check_hardware(opt, capability)
    if opt.cuda_graph:
        raise options.Refusal("TensorFlow captures no whole step as a CUDA graph; leave cuda_graph out.")
    if opt.precision == "amp" and opt.device == "cpu":
        raise options.Refusal("TensorFlow has no fast float16 convolutions on the CPU; use bf16 or fp32.")
    if opt.layout == "NCHW" and opt.device == "cpu" and not opt.compile:
        raise options.Refusal("TensorFlow trains convolutions on the CPU in NHWC only; use layout NHWC.")
    without_nhwc = opt.device == "cuda" and (opt.precision == "fp32" or capability < (7, 0))
    if opt.layout == "NHWC" and without_nhwc and not opt.compile:
        raise options.Refusal(
            "TensorFlow would compute these convolutions in NCHW all the same on this GPU; use layout NCHW."
        )


def facts():
    build = tf.sysconfig.get_build_info()
    return {
        "framework_version": tf.__version__,
        "cuda": build.get("cuda_version"),
        "cudnn": build.get("cudnn_version"),
        "cuda_devices": len(tf.config.list_physical_devices("GPU")),
    }


if __name__ == "__main__":
    loop.main("tensorflow", Training, check, facts)
