"""The passes through ResNet-50 v1.5, written out: what is stored, what is computed again, what is fused.

Activations are handed on as matrices, before their batch norm was applied. A matrix has a row for every
image, row and column of the picture, and a column for every channel (NHWC). What has one number a channel
is float32, whatever the matrices are. Weight gradients run on a side stream: only the all-reduce and the
update wait for them, and such a product fills what small kernels and the gaps between kernels leave of a
device.
"""

from dataclasses import dataclass, replace

import torch

from trainmark.workloads.resnet50.shared import recipe


@dataclass
class BatchNorm:
    """A batch norm: what it learns, its running statistics, and where its gradients go."""

    scale: torch.Tensor
    bias: torch.Tensor
    mean: torch.Tensor
    variance: torch.Tensor
    scale_gradient: torch.Tensor
    bias_gradient: torch.Tensor

    def copy(self):
        """The same with running statistics of its own, which a try may move."""
        return replace(self, mean=self.mean.clone(), variance=self.variance.clone())


@dataclass
class PendingNorm:
    """`raw` is what a convolution gave; who reads it computes `raw · factor + offset` on the way."""

    raw: torch.Tensor
    factor: torch.Tensor
    offset: torch.Tensor
    mean: torch.Tensor
    deviation: torch.Tensor  # its inverse: 1 / sqrt(variance + ε)

    def of(self, raw):
        """The same norm over other rows, such as those that pooling has chosen."""
        return PendingNorm(raw, self.factor, self.offset, self.mean, self.deviation)


@dataclass
class ExpandedNorm(PendingNorm):
    """What a 1×1 convolution with more outputs than inputs gave: all that its norm needs, the operand tells.

    The sum of squares of an output is its weights times the operand's covariance times its weights, and the
    operand has fewer columns. `total` is the sum of its rows, `covariance` the weights times its own.
    Nobody reads `raw`: kernels never store it.
    """

    operand: torch.Tensor = None
    weight: torch.Tensor = None
    total: torch.Tensor = None
    covariance: torch.Tensor = None


@dataclass
class ResidualSum:
    """The end of a block: `relu(norm + shortcut)`; the shortcut is a matrix, or again to be normed."""

    norm: PendingNorm
    shortcut: object
    value: torch.Tensor = None


@dataclass
class BatchNormGrad:
    """The gradient of `norm.raw`, as `by · upper + raw · own + rest`, computed by who reads it.

    `upper` is the gradient behind the norm; where `rectify`, behind the ReLU that follows it, and what the
    ReLU stopped still counts as zero.
    """

    upper: torch.Tensor
    norm: PendingNorm
    by: torch.Tensor
    own: torch.Tensor
    rest: torch.Tensor
    rectify: bool = False


def side_stream(device):
    return SideStream(device) if device.type == "cuda" else INLINE


class InlineStream:
    """Nothing beside: work is done where it is begun."""

    def begin(self, work):
        work()

    def turn(self):
        pass


INLINE = InlineStream()


class SideStream:
    """What work reads is held until the stream that began it has waited: no one else may write there."""

    def __init__(self, device):
        self.stream = torch.cuda.Stream(device)
        self.now, self.before = [], []

    def begin(self, work):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            work()
            self.now.append((self.stream.record_event(), work))

    def turn(self):
        """Waits for what was begun before the last turn."""
        for done, _ in self.before:
            torch.cuda.current_stream().wait_event(done)
        self.before, self.now = self.now, []


@dataclass
class ConvNorm:
    """Weights for the products, where their gradient goes, and the batch norm behind."""

    weight: torch.Tensor
    gradient: torch.Tensor
    norm: BatchNorm


@dataclass
class BottleneckWeights:
    """`stride` is that of the 3×3 convolution and of the shortcut."""

    first: ConvNorm
    second: ConvNorm
    third: ConvNorm
    shortcut: ConvNorm
    stride: int


@dataclass
class SavedActivations:
    """What the way back through a block needs of the way there.

    `x` is its operand; `x1` and those with a y are as in `Passes.through`.
    """

    block: BottleneckWeights
    shape: tuple
    x: object
    y1: PendingNorm
    x1: torch.Tensor
    y2: PendingNorm


def build_network(parameters):
    """The stem and the blocks over these parameters."""

    def conv(name, as_picture=False):
        pick = parameters.view if as_picture else parameters.rows
        weights = name.replace("norm", "conv") + ".weight"
        return ConvNorm(pick(parameters.half, weights), pick(parameters.gradient, weights), norm(name))

    def norm(name):
        learnt = [parameters.view(parameters.master, name + part) for part in (".scale", ".bias")]
        statistics = [parameters.named[name + part] for part in (".mean", ".variance")]
        gradients = [parameters.view(parameters.gradient, name + part) for part in (".scale", ".bias")]
        return BatchNorm(*learnt, *statistics, *gradients)

    blocks = []
    for index, (inputs, width, stride) in enumerate(recipe.bottlenecks()):
        name = "blocks.{}.".format(index)
        shortcut = conv(name + "shortcut.norm") if recipe.has_shortcut(inputs, width, stride) else None
        convolutions = conv(name + "norm1"), conv(name + "norm2", as_picture=True), conv(name + "norm3")
        blocks.append(BottleneckWeights(*convolutions, shortcut, stride))
    return conv("stem.norm", as_picture=True), blocks


class Passes:
    """One batch forward and backward; `operations` are the kernels or the reference operations.

    Gradients of weights for which nothing else waits are left to `beside`.
    """

    def __init__(self, parameters, operations, beside=INLINE):
        self.stem, self.blocks = build_network(parameters)
        self.ops, self.beside = operations, beside
        self.kind = parameters.half.dtype
        self.activations = []

    def forward(self, images):
        """The features before the mean, as the last block's output."""
        ops = self.ops
        self.images = images.shape[0]
        self.folded = ops.fold(images, self.kind)
        shape = self.images, self.folded.shape[1] - 3, self.folded.shape[2] - 3
        self.stem_norm = ops.stem(self.folded, ops.fold_weight(self.stem.weight), self.stem.norm)
        x, self.which = ops.pool(self.stem_norm, shape)
        self.stem_shape, shape = shape, halved_shape(shape)
        self.activations = []
        for block in self.blocks:
            x, shape = self.through(block, x, shape)
        self.last = x
        return x.value

    def through(self, block, x, shape):
        ops = self.ops
        y1 = ops.conv1x1(x, block.first)
        x1 = ops.bn_relu(y1)
        out = halved_shape(shape) if block.stride == 2 else shape
        y2 = ops.statistics(ops.conv3x3(x1, block.second.weight, shape, block.stride), block.second.norm)
        y3 = ops.expand(y2, block.third)
        if block.shortcut:
            shortcut = ops.expand(x, block.shortcut, shape if block.stride == 2 else None)
        else:
            shortcut = x.value
        self.activations.append(SavedActivations(block, shape, x, y1, x1, y2))
        return ops.residual_add(ResidualSum(y3, shortcut)), out

    def backward(self, gradient):
        """From the gradient of every image's mean; yields a block when its gradients are there."""
        upper, sums = self.ops.head_backward(gradient, self.last, self.images)
        onto, before = self.last, None
        while self.activations:
            seen = self.activations.pop()
            upper, sums = self.back_through(seen, onto, upper, sums)
            self.beside.turn()
            if before:
                yield before
            onto, before = seen.x, seen.block
        behind = self.batch_norm_grad(upper, onto, self.stem.norm, sums, rows=self.stem_norm.raw.shape[0])
        behind.norm = self.stem_norm
        folded = self.ops.stem_backward(behind, self.which, self.folded, self.stem_shape)
        self.stem.gradient.copy_(self.ops.unfold_weight(folded))
        self.beside.turn()
        yield before
        yield self.stem

    def back_through(self, seen, joined, upper, totals):
        """`upper` is the gradient in front of the ReLU of `joined`, which ends the block."""
        ops, block, y1, y2 = self.ops, seen.block, seen.y1, seen.y2
        upper2, sums2 = ops.expand_backward(upper, totals, joined.norm, block.third, onto=y2)
        raw2 = ops.batch_norm_backward(self.batch_norm_grad(upper2, y2, block.second.norm, sums2))
        upper1 = ops.conv3x3_backward(raw2, seen.x1, block.second, seen.shape, block.stride, self.beside)
        s1 = self.batch_norm_grad(
            upper1, y1, block.first.norm, ops.sums(upper1, y1, rectify=True), rectify=True
        )
        addend, spread = upper, None
        if block.shortcut:
            addend, _ = ops.expand_backward(upper, totals, joined.shortcut, block.shortcut)
            spread = seen.shape if block.stride == 2 else None
        return ops.conv1x1_backward(s1, seen.x, block.first, self.beside, seen.x, addend, spread)

    def batch_norm_grad(self, upper, x, norm, sums, rectify=False, rows=None):
        coefficients = self.ops.coefficients(sums, norm, x, rows or x.raw.shape[0])
        return BatchNormGrad(upper, x, *coefficients, rectify=rectify)


def halved_shape(shape):
    images, rows, columns = shape
    return images, (rows + 1) // 2, (columns + 1) // 2
