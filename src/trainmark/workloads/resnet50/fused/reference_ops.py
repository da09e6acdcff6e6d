"""Every kernel in plain PyTorch: what its tests compare with, and what runs without a CUDA device.

Sums and products are taken in float32 or better; what is stored is rounded to the matrices' own kind.
"""

import torch
from torch.nn import functional as F

from trainmark.workloads.resnet50.fused.network import (
    INLINE,
    BatchNormGrad,
    ExpandedNorm,
    PendingNorm,
    ResidualSum,
)
from trainmark.workloads.resnet50.shared import recipe


def upcast(matrix):
    return matrix.to(torch.promote_types(matrix.dtype, torch.float32))


def fallbacks():
    return ["without a CUDA device every kernel is plain PyTorch"]


# Reading an operand


def normed(x):
    return upcast(x.raw) * x.factor + x.offset


def value(x):
    """The matrix that a convolution reads, rounded as if it had been stored."""
    if isinstance(x, PendingNorm):
        return bn_relu(x)
    if isinstance(x, ResidualSum):
        return residual_add(x).value
    return x


def bn_relu(x):
    return normed(x).relu().to(x.raw.dtype)


def residual_add(x):
    """A block's end with its value, which is computed once."""
    if x.value is None:
        x.value = residual_sum(x)
    return x


def residual_sum(x):
    shortcut = normed(x.shortcut) if isinstance(x.shortcut, PendingNorm) else upcast(x.shortcut)
    return (normed(x.norm) + shortcut).relu().to(x.norm.raw.dtype)


def batch_norm_backward(s):
    upper = upcast(s.upper)
    if s.rectify:
        upper = torch.where(normed(s.norm) > 0, upper, 0)
    return (s.by * upper + s.own * upcast(s.norm.raw) + s.rest).to(s.upper.dtype)


# Forward


def conv1x1(x, conv):
    """`value(x) · weightᵀ`, ready to be normed."""
    raw = (upcast(value(x)) @ upcast(conv.weight).T).to(conv.weight.dtype)
    return statistics(raw, conv.norm)


def expand(x, conv, shape=None):
    """The same where it has more outputs than inputs, and what it read is kept.

    Where a shape is given, only every second row and column of the pictures is read.
    """
    operand = value(x) if shape is None else strided_rows(value(x), *shape)
    return ExpandedNorm(**vars(conv1x1(operand, conv)), operand=operand)


def statistics(raw, norm):
    """The norm of a batch; its running statistics move on (the variance kept there is the sample's)."""
    variance, mean = torch.var_mean(upcast(raw), dim=0, correction=0)
    deviation = (variance + recipe.BATCH_NORM_EPSILON).rsqrt()
    rows = raw.shape[0]
    momentum = recipe.BATCH_NORM_MOMENTUM
    norm.mean.lerp_(mean.to(norm.mean.dtype), momentum)
    norm.variance.lerp_((variance * rows / (rows - 1)).to(norm.mean.dtype), momentum)
    factor = norm.scale * deviation
    return PendingNorm(raw, factor, norm.bias - mean * factor, mean, deviation)


# Backward


def coefficients(sums, norm, x, rows):
    """Return those of a batch-norm gradient from `Σ g` and `Σ g·(raw − mean)`; set scale and bias."""
    total, against = sums
    norm.bias_gradient.copy_(total)
    norm.scale_gradient.copy_(against * x.deviation)
    by = norm.scale * x.deviation
    own = -by * x.deviation**2 * against / rows
    return by, own, -by * total / rows - own * x.mean


def sums(upper, x, rectify=False):
    upper = upcast(upper)
    if rectify:
        upper = torch.where(normed(x) > 0, upper, 0)
    return upper.sum(0), (upper * (upcast(x.raw) - x.mean)).sum(0)


def conv1x1_backward(s, x, conv, beside, onto=None, addend=None, spread=None):
    """Both gradients of a product; that of the weights goes to its place, in time.

    The operand's is stopped by its own ReLU, and comes with the sums that its norm or its block needs.
    `addend` came by the shortcut; where that has strides, `spread` (images, rows, columns) says how its rows
    lie among these.
    """
    gradient, kind = upcast(batch_norm_backward(s)), conv.weight.dtype
    beside.begin(lambda: conv.gradient.copy_(gradient.T @ upcast(value(x))))
    out = gradient @ upcast(conv.weight)
    if addend is not None:
        out += upcast(addend if spread is None else unstrided_rows(addend, spread))
    if onto is None:
        return out.to(kind), None
    return relu_backward(out, onto, kind)


def expand_backward(upper, totals, y, conv, onto=None):
    """Both gradients of what widened, where `totals` are the sums of `upper`."""
    _, against = sums(upper, y)
    numbers = coefficients((totals, against), conv.norm, y, upper.shape[0])
    return conv1x1_backward(BatchNormGrad(upper, y, *numbers), y.operand, conv, INLINE, onto)


def relu_backward(out, onto, kind):
    if isinstance(onto, PendingNorm):
        out = torch.where(normed(onto) > 0, out, 0).to(kind)
        return out, sums(out, onto)
    out = torch.where(onto.value > 0, out, 0).to(kind)
    return out, upcast(out).sum(0)


def strided_rows(matrix, images, rows, columns):
    return matrix.view(images, rows, columns, -1)[:, ::2, ::2].reshape(-1, matrix.shape[1])


def unstrided_rows(matrix, shape):
    images, rows, columns = shape
    wide_one = matrix.new_zeros(images, rows, columns, matrix.shape[1])
    wide_one[:, ::2, ::2] = matrix.view(images, (rows + 1) // 2, (columns + 1) // 2, -1)
    return wide_one.view(-1, matrix.shape[1])


# Around the matrices: the stem, its pooling, the blocks' 3×3 convolutions, the mean before the classifier


def fold(images, kind):
    """Cells of 2×2 pixels as 12 channels of 16, with a margin: a 7×7 convolution of stride 2 is 4×4 there."""
    rows, columns = (-(-side // 2) for side in images.shape[2:])
    bottom, right = (2 * (cells + 3) - 4 - side for cells, side in zip((rows, columns), images.shape[2:]))
    padded = F.pad(images, (4, right, 4, bottom))
    cells = padded.unflatten(2, (-1, 2)).unflatten(4, (-1, 2)).permute(0, 2, 4, 3, 5, 1).flatten(3)
    return F.pad(cells, (0, 4)).to(kind).contiguous()


def fold_weight(weight):
    """As (outputs, 4, 4, 16), for folded images."""
    padded = F.pad(weight, (1, 0, 1, 0))
    cells = padded.unflatten(2, (4, 2)).unflatten(4, (4, 2)).permute(0, 2, 4, 3, 5, 1).flatten(3)
    return F.pad(cells, (0, 4)).contiguous()


def unfold_weight(folded):
    cells = folded[..., :12].unflatten(3, (2, 2, 3)).permute(0, 5, 1, 3, 2, 4)
    return cells.flatten(4, 5).flatten(2, 3)[:, :, 1:, 1:]


def stem(folded, weight, norm):
    out = F.conv2d(upcast(folded).permute(0, 3, 1, 2), upcast(weight).permute(0, 3, 1, 2))
    return statistics(out.permute(0, 2, 3, 1).flatten(0, 2).to(folded.dtype), norm)


def stem_backward(s, which, folded, shape):
    """The weights' gradient, for folded images; `s.upper` has a row for each pixel that was chosen."""
    gradient = upcast(pool_backward(s, which, shape)).view(*shape, -1).permute(0, 3, 1, 2)
    out = torch.nn.grad.conv2d_weight(
        upcast(folded).permute(0, 3, 1, 2), (gradient.shape[1], 16, 4, 4), gradient
    )
    return out.permute(0, 2, 3, 1)


def pool(x, shape):
    """The largest of 3×3 in steps of two, still to be normed, and which of the nine it was."""
    images, rows, columns = shape
    picture = normed(x).view(images, rows, columns, -1).permute(0, 3, 1, 2)
    _, place = F.max_pool2d(picture, 3, stride=2, padding=1, return_indices=True)
    raw = x.raw.view(images, rows * columns, -1).permute(0, 2, 1)
    chosen = raw.gather(2, place.flatten(2)).view(place.shape)
    top = torch.arange(place.shape[2], device=place.device)[:, None] * 2 - 1
    left = torch.arange(place.shape[3], device=place.device)[None] * 2 - 1
    which = (place // columns - top) * 3 + place % columns - left
    flat = [part.permute(0, 2, 3, 1).flatten(0, 2).contiguous() for part in (chosen, which.to(torch.uint8))]
    return x.of(flat[0]), flat[1]


def pool_backward(s, which, shape):
    """The gradient of what was pooled; `s.upper` has a row for every pooled one."""
    images, rows, columns = shape
    small = [images, (rows + 1) // 2, (columns + 1) // 2, -1]
    upper, which = upcast(s.upper).view(small), which.view(small)
    # A margin takes what no window of the picture reaches.
    out = upper.new_zeros(images, 2 * small[1] + 1, 2 * small[2] + 1, upper.shape[3])
    for place in range(9):
        down, right = divmod(place, 3)
        here = torch.where(which == place, upper, 0)
        out[:, down : down + 2 * small[1] : 2, right : right + 2 * small[2] : 2] += here
    out = out[:, 1 : rows + 1, 1 : columns + 1].reshape(images * rows * columns, -1)
    return (s.by * out + s.own * upcast(s.norm.raw) + s.rest).to(s.upper.dtype)


def conv3x3(x, weight, shape, stride):
    """3×3 over a matrix, as a matrix; PyTorch's own, which is cuDNN's on a GPU."""
    out = F.conv2d(picture(x, shape), weight, stride=stride, padding=1)
    return matrix(out)


def conv3x3_backward(gradient, x, conv, shape, stride, beside):
    """The gradient of its operand; that of its weights is put in its place, in time."""
    small = shape[0], -(-shape[1] // stride), -(-shape[2] // stride)
    pictures = picture(gradient, small), picture(x, shape)

    def back(*wanted):
        geometry = [stride, stride], [1, 1], [1, 1], False, [0, 0], 1
        return torch.ops.aten.convolution_backward(*pictures, conv.weight, None, *geometry, [*wanted, False])

    beside.begin(lambda: conv.gradient.copy_(back(False, True)[1]))
    return matrix(back(True, False)[0])


def picture(rows, shape):
    return rows.view(*shape, -1).permute(0, 3, 1, 2)


def matrix(picture):
    # What PyTorch gives on a GPU is laid out as was asked for; elsewhere it may not be.
    return picture.permute(0, 2, 3, 1).contiguous().flatten(0, 2)


def head_backward(gradient, onto, images):
    """From the gradient of every image's mean to that of the last block."""
    rows = onto.value.shape[0] // images
    spread = (upcast(gradient) / rows).repeat_interleave(rows, dim=0)
    return relu_backward(spread, onto, onto.value.dtype)


# The update


def find_overflow(gradient, overflow):
    """Sets `overflow` to one where any gradient is infinite or not a number."""
    overflow.copy_(~gradient.isfinite().all())


def update(parameters, rate, shrink, overflow, inertia, decay):
    """SGD with momentum; `shrink` undoes the loss scale, and nothing moves where an overflow was found."""
    weights, decayed = parameters.master, parameters.decayed
    gradient = parameters.gradient * shrink
    gradient[:decayed] += decay * weights[:decayed]
    moves = overflow == 0
    momentum = parameters.momentum
    momentum.copy_(torch.where(moves, inertia * momentum + gradient, momentum))
    weights.copy_(torch.where(moves, weights - rate * momentum, weights))
    if parameters.half is not weights:
        parameters.half.copy_(weights)
