"""What the passes hand to one another: activations as matrices, before their batch norm was applied.

A matrix has a row for every image, row and column of the picture, and a column for every channel (NHWC). What
has one number a channel is float32, whatever the matrices are.
"""

from dataclasses import dataclass, replace

import torch


@dataclass
class Norm:
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
class Normed:
    """`raw` is what a convolution gave; who reads it computes `raw · factor + offset` on the way."""

    raw: torch.Tensor
    factor: torch.Tensor
    offset: torch.Tensor
    mean: torch.Tensor
    deviation: torch.Tensor  # its inverse: 1 / sqrt(variance + ε)

    def of(self, raw):
        """The same norm over other rows, such as those that pooling has chosen."""
        return Normed(raw, self.factor, self.offset, self.mean, self.deviation)


@dataclass
class Widened(Normed):
    """What a 1×1 convolution with more outputs than inputs gave: all that its norm needs, the operand tells.

    The sum of squares of an output is its weights times the operand's covariance times its weights, and the
    operand has fewer columns. `total` is the sum of its rows, `spread` the weights times its covariance.
    Nobody reads `raw`: kernels never store it.
    """

    operand: torch.Tensor = None
    weight: torch.Tensor = None
    total: torch.Tensor = None
    spread: torch.Tensor = None


@dataclass
class Joined:
    """The end of a block: `relu(norm + shortcut)`; the shortcut is a matrix, or again to be normed."""

    norm: Normed
    shortcut: object
    value: torch.Tensor = None


@dataclass
class BatchNormGrad:
    """The gradient of `norm.raw`, as `by · upper + raw · own + rest`, computed by who reads it.

    `upper` is the gradient behind the norm; where `rectify`, behind the ReLU that follows it, and what the
    ReLU stopped still counts as zero.
    """

    upper: torch.Tensor
    norm: Normed
    by: torch.Tensor
    own: torch.Tensor
    rest: torch.Tensor
    rectify: bool = False
