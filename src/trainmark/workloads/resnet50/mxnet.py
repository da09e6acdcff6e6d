"""Training ResNet-50 v1.5 in MXNet (Gluon): the model, the data, the step, main."""

import functools
import itertools
import pathlib

import mxnet as mx
import numpy as np
from mxnet import autograd
from mxnet.contrib import amp
from mxnet.gluon import nn

from trainmark import probe
from trainmark.workloads.images import augment
from trainmark.workloads.resnet50.models.mxnet import ResNet50, named_parameters
from trainmark.workloads.resnet50.shared import loop, mpi_ranks, options, synthetic, tensors
from trainmark.workloads.resnet50.shared.placed import Placed

BFLOAT16 = np.dtype([("bfloat16", np.uint16)])  # as MXNet calls it, for numpy has none
BUCKET = 40  # tensors that are averaged and updated together; more than 60 crash the fused update

# The model


def build_model(opt):
    mx.random.seed(opt.seed)  # the same weights on every rank
    model = ResNet50()
    model.initialize()
    return model


# The data


def batches(opt):
    """An endless stream: one batch, or several in turn; on the CPU host and device memory are the same."""
    count = 1 if opt.data == "synthetic" else synthetic.BATCHES
    return itertools.cycle([place(*batch) for batch in synthetic.batches(opt, count)])


def place(images, labels):
    """Host arrays, images as NCHW."""
    return mx.nd.array(images), mx.nd.array(labels, dtype=np.float32)


def normalised(loaded):
    """A loader's batches as NCHW; here, and not before, pixels become numbers of four bytes."""
    mean, deviation = (mx.nd.array(part).reshape((1, 3, 1, 1)) for part in (augment.MEAN, augment.DEVIATION))
    for pixels, labels in loaded:
        images, labels = place(pixels.transpose(0, 3, 1, 2), labels)
        yield (images - mean) / deviation, labels


def unpinned(*batch):
    """MXNet's own loader gives memory that a GPU likes; a graph takes none of it beside other memory."""
    return tuple(part.as_in_context(mx.cpu()) for part in batch)


# The step


class Step:
    """Forward, backward and update of one batch; `ranks` is None where there is but one."""

    def __init__(self, opt, model, ranks):
        self.ranks, self.recipe = ranks, opt.recipe
        self.share = 1 / ranks.size if ranks is not None else 1.0
        self.is_lars = opt.recipe.optimizer == "lars"
        self.objective = (MixedObjective if opt.recipe.mixup else Objective)(
            model, opt.recipe.label_smoothing
        )
        self.objective.hybridize(static_alloc=True, static_shape=True)
        named = named_parameters(model)
        trained = [(name, named[name]) for name in named if not tensors.is_statistic(name)]
        trained.reverse()  # as the backward pass comes to them
        parts = [trained[first : first + BUCKET] for first in range(0, len(trained), BUCKET)]
        decay = 0.0 if self.is_lars else opt.recipe.weight_decay
        self.buckets = [Bucket(*zip(*part), decay) for part in parts]
        self.last_rate = 0.0

    def __call__(self, images, labels, rate, kept):
        mixed = (mx.nd.array([kept]),) if self.recipe.mixup else ()
        with autograd.record():
            loss = self.objective(images, labels, *mixed)
        loss.backward()
        for bucket in self.buckets:
            if self.ranks is not None:
                bucket.sum_over(self.ranks)
            if self.is_lars:
                bucket.take_layers_own_rates(self.recipe, rate, self.share)
                bucket.update(1.0, self.recipe.momentum, 1.0)
            else:
                bucket.update(rate, self.momentum(rate), self.share)
        self.last_rate = rate
        mx.nd.waitall()  # the engine runs behind the host, and cannot be asked when it has passed a step
        return loss

    def momentum(self, rate):
        """MXNet's velocity is rate x buffer, at the rate of the step before; this makes it the new one's."""
        return self.recipe.momentum * rate / self.last_rate if self.last_rate else 0.0


class Objective(nn.HybridBlock):
    """The model and its loss in one graph: cross entropy with smoothed labels, the mean of the batch."""

    def __init__(self, model, smoothing):
        super().__init__()
        self.model, self.smoothing = model, smoothing

    def hybrid_forward(self, F, images, labels):  # noqa: N803 - Gluon's name of the operations
        return self.loss(F, F.log_softmax(self.model(images)), labels)

    def loss(self, F, log_p, labels):  # noqa: N803
        right, all_alike = F.pick(log_p, labels), F.mean(log_p, axis=1)
        smoothed = (1 - self.smoothing) * right + self.smoothing * all_alike
        return -F.mean(smoothed)


class MixedObjective(Objective):
    """Of images that keep a share of themselves, and take the rest from the other end of the batch."""

    def hybrid_forward(self, F, images, labels, kept):  # noqa: N803
        each = F.reshape(kept, shape=(1, 1, 1, 1))
        images = F.broadcast_mul(images, each) + F.broadcast_mul(F.flip(images, axis=0), 1 - each)
        log_p = F.log_softmax(self.model(images))
        own, other = self.loss(F, log_p, labels), self.loss(F, log_p, F.flip(labels, axis=0))
        return kept * own + (1 - kept) * other


class Bucket:
    """Some parameters, their velocities, and their gradients side by side in one buffer."""

    def __init__(self, names, parameters, decay):
        self.names = names
        for parameter in parameters:
            parameter.grad_req = "null"  # gives the gradient array of its own back
        self.weights = [parameter.data() for parameter in parameters]
        self.velocities = [mx.nd.zeros_like(weight) for weight in self.weights]
        self.decays = [decay * tensors.is_decayed(name) for name in names]
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

    def take_layers_own_rates(self, recipe, rate, share):
        """Gradients become steps, each layer's in proportion to its weights (LARS; You et al. 2017)."""
        self.flat *= share
        for weight, gradient in zip(self.weights, self.gradients):
            if weight.ndim == 1:  # batch norm and bias
                gradient *= rate
                continue
            decay, weights, length = recipe.weight_decay, weight.norm(), gradient.norm()
            trust = recipe.trust * weights / (length + decay * weights)
            trust = mx.nd.where((weights > 0) * (length > 0), trust, mx.nd.ones_like(trust))
            gradient += decay * weight
            gradient *= rate * trust.reshape((1,) * weight.ndim)


# Main


class Training:
    """The verbs of the shared loop; see `shared/loop.py`."""

    def __init__(self, opt):
        self.opt = opt
        self.ranks = begin(opt)
        self.model = build_model(opt)
        self.trained = [p for p in self.model.collect_params().values() if p.grad_req != "null"]
        self.update = Step(opt, self.model, self.ranks)

    def batches(self):
        return batches(self.opt)

    def place(self, images, labels):
        return place(images, labels)

    def feed(self, loaded):
        return normalised(loaded)

    def own_images(self):
        from trainmark.workloads.images.own import mxnet

        return Placed(mxnet.Images(self.opt), unpinned)

    def step(self, images, labels, rate, kept=1.0):
        return self.update(images, labels, rate, kept)

    def evaluate(self, images, labels):
        best = mx.nd.topk(self.model(images), k=5)
        right = mx.nd.broadcast_equal(best, labels.reshape((-1, 1)))
        return mx.nd.concat(right[:, 0].sum(), right.sum(), dim=0).asnumpy

    def total(self, numbers):
        added = np.array(numbers, np.float64)
        if self.ranks is not None:
            self.ranks.Allreduce(mpi_ranks.mpi().IN_PLACE, added)
        return added.tolist()

    def read(self, loss):
        return loss.asscalar

    def parameters(self):
        return sum(parameter.data().size for parameter in self.trained)

    def load(self, values, momenta=None, rest=None):
        for name, parameter in named_parameters(self.model).items():
            parameter.set_data(mx.nd.array(values[name]))
        for name, velocity in self.velocities():
            velocity[:] = mx.nd.array(momenta[name]) if momenta else 0
        self.update.last_rate = rest["last_rate"] if rest else 0.0

    def tensors(self):
        named = named_parameters(self.model)
        return {name: parameter.data().asnumpy() for name, parameter in named.items()}

    def momenta(self):
        return {name: velocity.asnumpy() for name, velocity in self.velocities()}

    def velocities(self):
        for bucket in self.update.buckets:
            yield from zip(bucket.names, bucket.velocities)

    def rest(self):
        return {"last_rate": self.update.last_rate}

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
    if opt.loader.startswith("dali"):
        raise options.Refusal("DALI feeds PyTorch only; use loader host or own.")
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
