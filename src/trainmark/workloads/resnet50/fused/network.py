"""The passes through ResNet-50 v1.5, written out: what is kept, what is computed again, what is fused."""

from dataclasses import dataclass

import torch

from trainmark.workloads.resnet50.fused.side_stream import AT_ONCE
from trainmark.workloads.resnet50.fused.terms import BatchNormGrad, Joined, Norm, Normed
from trainmark.workloads.resnet50.shared import recipe


@dataclass
class Conv:
    """Weights for the products, where their gradient goes, and the batch norm behind."""

    weight: torch.Tensor
    gradient: torch.Tensor
    norm: Norm


@dataclass
class Block:
    """`stride` is that of the 3×3 convolution and of the shortcut."""

    first: Conv
    second: Conv
    third: Conv
    shortcut: Conv
    stride: int


@dataclass
class SavedActivations:
    """What the way back through a block needs of the way there.

    `x` is its operand; `x1` and those with a y are as in `Passes.through`.
    """

    block: Block
    shape: tuple
    x: object
    y1: Normed
    x1: torch.Tensor
    y2: Normed


def network(parameters):
    """The stem and the blocks over these parameters."""

    def conv(name, as_picture=False):
        pick = parameters.view if as_picture else parameters.rows
        weights = name.replace("norm", "conv") + ".weight"
        return Conv(pick(parameters.half, weights), pick(parameters.gradient, weights), norm(name))

    def norm(name):
        learnt = [parameters.view(parameters.master, name + part) for part in (".scale", ".bias")]
        statistics = [parameters.named[name + part] for part in (".mean", ".variance")]
        gradients = [parameters.view(parameters.gradient, name + part) for part in (".scale", ".bias")]
        return Norm(*learnt, *statistics, *gradients)

    blocks = []
    for stage, (depth, _) in enumerate(recipe.STAGES):
        for index in range(depth):
            name = "blocks.{}.".format(len(blocks))
            blocks.append(
                Block(
                    conv(name + "norm1"),
                    conv(name + "norm2", as_picture=True),
                    conv(name + "norm3"),
                    conv(name + "shortcut.norm") if index == 0 else None,
                    stride=2 if index == 0 and stage > 0 else 1,
                )
            )
    return conv("stem.norm", as_picture=True), blocks


class Passes:
    """One batch forward and backward; `operations` are the kernels or the reference operations.

    Gradients of weights for which nothing else waits are left to `beside`.
    """

    def __init__(self, parameters, operations, beside=AT_ONCE):
        self.stem, self.blocks = network(parameters)
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
        self.stem_shape, shape = shape, halved(shape)
        self.activations = []
        for block in self.blocks:
            x, shape = self.through(block, x, shape)
        self.last = x
        return x.value

    def through(self, block, x, shape):
        ops = self.ops
        y1 = ops.product(x, block.first)
        x1 = ops.rectified(y1)
        out = halved(shape) if block.stride == 2 else shape
        y2 = ops.statistics(ops.convolution(x1, block.second.weight, shape, block.stride), block.second.norm)
        y3 = ops.widen(y2, block.third)
        if block.shortcut:
            shortcut = ops.widen(x, block.shortcut, shape if block.stride == 2 else None)
        else:
            shortcut = x.value
        self.activations.append(SavedActivations(block, shape, x, y1, x1, y2))
        return ops.join(Joined(y3, shortcut)), out

    def backward(self, gradient):
        """From the gradient of every image's mean; yields a block when its gradients are there."""
        upper, sums = self.ops.head_back(gradient, self.last, self.images)
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
        folded = self.ops.stem_back(behind, self.which, self.folded, self.stem_shape)
        self.stem.gradient.copy_(self.ops.unfold_weight(folded))
        self.beside.turn()
        yield before
        yield self.stem

    def back_through(self, seen, joined, upper, totals):
        """`upper` is the gradient in front of the ReLU of `joined`, which ends the block."""
        ops, block, y1, y2 = self.ops, seen.block, seen.y1, seen.y2
        upper2, sums2 = ops.widen_back(upper, totals, joined.norm, block.third, onto=y2)
        raw2 = ops.apply(self.batch_norm_grad(upper2, y2, block.second.norm, sums2))
        upper1 = ops.convolution_back(raw2, seen.x1, block.second, seen.shape, block.stride, self.beside)
        s1 = self.batch_norm_grad(
            upper1, y1, block.first.norm, ops.sums(upper1, y1, rectify=True), rectify=True
        )
        addend, spread = upper, None
        if block.shortcut:
            addend, _ = ops.widen_back(upper, totals, joined.shortcut, block.shortcut)
            spread = seen.shape if block.stride == 2 else None
        return ops.product_gradients(s1, seen.x, block.first, self.beside, seen.x, addend, spread)

    def batch_norm_grad(self, upper, x, norm, sums, rectify=False, rows=None):
        coefficients = self.ops.coefficients(sums, norm, x, rows or x.raw.shape[0])
        return BatchNormGrad(upper, x, *coefficients, rectify=rectify)


def halved(shape):
    images, rows, columns = shape
    return images, (rows + 1) // 2, (columns + 1) // 2
