"""The end of a block: what widened is normed, joined with the shortcut and rectified before it is stored.

Its norm is known before it is computed, since its operand told.
"""

import torch
import triton
import triton.language as tl

from trainmark.workloads.common import kernel_tuning as tuning
from trainmark.workloads.resnet50.fused.kernels import channels
from trainmark.workloads.resnet50.fused.kernels.persistent import walk
from trainmark.workloads.resnet50.fused.kernels.reading import normed, tile_of
from trainmark.workloads.resnet50.fused.terms import Normed


@triton.jit
def _join(
    x, weight, factor, offset, shortcut, shortcut_factor, shortcut_offset, value, rows,
    inner: tl.constexpr, outputs: tl.constexpr, norms: tl.constexpr, exact: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, stages: tl.constexpr,
):  # fmt: skip
    across: tl.constexpr = outputs // BN
    n = tl.program_id(0) % across * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    first, step = tl.program_id(0) // across, tl.num_programs(0) // across
    w = tl.load(weight + n[None, :] * inner + k[:, None])
    for tile in tl.range(first, tl.cdiv(rows, BM), step, num_stages=stages if inner == BK else 1):
        out = tl.zeros([BM, BN], tl.float32)
        target, lies = tile_of(tile, n, rows, outputs, BM)
        if inner != BK:  # on its way while the product is computed; in one piece, tiles overlap as wholes
            other = tl.load(shortcut + target, mask=lies, other=0.0)
        for at in tl.range(0, inner, BK, num_stages=1 if inner == BK else stages):
            place, there = tile_of(tile, at + k, rows, inner, BM)
            a = tl.load(x + place, mask=there, other=0.0)
            if inner != BK:
                w = tl.load(weight + n[None, :] * inner + (at + k)[:, None])
            out = tl.dot(a, w, out, input_precision="ieee" if exact else "tf32")
        if inner == BK:
            other = tl.load(shortcut + target, mask=lies, other=0.0)
        added = other.to(tl.float32)
        if norms:
            added = normed(other, tl.load(shortcut_factor + n), tl.load(shortcut_offset + n))
        out = tl.maximum(normed(out, tl.load(factor + n), tl.load(offset + n)) + added, 0.0)
        tl.store(value + target, out.to(value.dtype.element_ty), mask=lies)


# Rows, outputs and inner columns of a tile, warps, stages.
TILES = [
    (64, 128, 64, 4, 3),
    (128, 128, 64, 8, 3),
    (64, 128, 128, 4, 2),
    (128, 128, 64, 8, 4),
    (64, 256, 64, 8, 3),
    (128, 256, 64, 8, 3),
]
MOST_WEIGHTS = 256 * 1024  # what it saves grows with the outputs
FUSED, APART = "fused", "apart"


def join(x):
    """A block's end with its value."""
    shortcut, weight = x.shortcut, x.norm.weight
    norms = isinstance(shortcut, Normed)
    if norms:
        shortcut = shortcut.of(shortcut.operand @ shortcut.weight.T)
    operand = x.norm.operand

    def launch(way):
        if way == FUSED:
            return _fused(x.norm, shortcut, norms)
        return channels.joined(x.norm.of(operand @ weight.T), shortcut)

    key = operand.shape[0], *weight.shape, norms, weight.dtype
    ways = [FUSED, APART] if tuning.dividing(TILES, *weight.shape, MOST_WEIGHTS) else [APART]
    x.value = launch(tuning.tuner.choose("join_way", key, ways, launch, weight.device))
    return x


def _fused(norm, shortcut, norms):
    rows, (outputs, inner) = norm.operand.shape[0], norm.weight.shape
    value = norm.operand.new_empty(rows, outputs)
    others = (shortcut.raw, shortcut.factor, shortcut.offset) if norms else (shortcut, shortcut, shortcut)

    def launch(tile):
        tall, across, deep, warps, stages = tile
        given = (
            norm.operand, norm.weight, norm.factor, norm.offset, *others, value, rows,
            inner, outputs, norms, value.dtype == torch.float32, tall, across, deep, stages,
        )  # fmt: skip
        walk(_join, lambda strips: (None, given), warps, -(-rows // tall), outputs // across, value.device)

    key = rows, inner, outputs, norms, value.dtype
    tried = tuning.dividing(TILES, outputs, inner, MOST_WEIGHTS)
    launch(tuning.tuner.choose("join", key, tried, launch, value.device))
    return value
