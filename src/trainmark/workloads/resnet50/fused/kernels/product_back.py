"""Gradients of 1×1 convolutions' operands: norms' gradients on the way in, the next sums on the way out."""

import torch
import triton
import triton.language as tl

from trainmark.workloads.resnet50.fused.kernels import tuning
from trainmark.workloads.resnet50.fused.kernels.product import candidates
from trainmark.workloads.resnet50.fused.kernels.reading import normed, slope, striped
from trainmark.workloads.resnet50.fused.kernels.stopping import with_addend
from trainmark.workloads.resnet50.fused.kernels.walking import walk


@triton.jit
def weights_of(weight, n, c, outputs: tl.constexpr, turned: tl.constexpr):
    if turned:
        return tl.load(weight + c[None, :] * outputs + n[:, None])
    else:  # noqa: RET505 - two returns of different shapes must be two branches
        return tl.load(weight + c[:, None] * outputs + n[None, :])


@triton.jit
def _product_back(
    upper, raw, by, own, rest, factor, offset, weight, out,
    addend, onto, onto_factor, onto_offset, onto_mean, totals, againsts, rows, picture_rows, picture_columns,
    inner: tl.constexpr, outputs: tl.constexpr, rectify: tl.constexpr, stop: tl.constexpr,
    adds: tl.constexpr, exact: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, turned: tl.constexpr, warps: tl.constexpr,
    stages: tl.constexpr,
):  # fmt: skip
    precision: tl.constexpr = "ieee" if exact else "tf32"
    across: tl.constexpr = outputs // BN
    column = tl.program_id(0) % across
    first = tl.program_id(0) // across
    step = tl.num_programs(0) // across
    n = column * BN + tl.arange(0, BN)
    m = tl.arange(0, BM)
    k = tl.arange(0, BK)
    kept: tl.constexpr = BM if turned else warps * 8
    total = tl.zeros([kept, BN], tl.float32)
    against = tl.zeros([kept, BN], tl.float32)
    if inner == BK:
        w = weights_of(weight, n, k, outputs, turned)
    for tile in tl.range(first, tl.cdiv(rows, BM), step, num_stages=stages if inner == BK else 1):
        start = tile * tl.full([], BM, tl.int64)
        there = (start + m < rows)[:, None]
        acc = tl.zeros([BN, BM] if turned else [BM, BN], tl.float32)
        for at in tl.range(0, inner, BK, num_stages=1 if inner == BK else stages):
            c = at + k
            place = start * inner + m[:, None] * inner + c[None, :]
            g = tl.load(upper + place, mask=there, other=0.0)
            x = tl.load(raw + place, mask=there, other=0.0)
            f, o = tl.load(factor + c), tl.load(offset + c)
            d = slope(g, x, tl.load(by + c), tl.load(own + c), tl.load(rest + c), f, o, rectify)
            if inner != BK:
                w = weights_of(weight, n, c, outputs, turned)
            if turned:
                acc = tl.dot(w, tl.trans(d.to(w.dtype)), acc, input_precision=precision)
            else:
                acc = tl.dot(d.to(w.dtype), w, acc, input_precision=precision)
        place = start * outputs + m[:, None] * outputs + n[None, :]
        acc = with_addend(
            tl.trans(acc) if turned else acc,
            addend,
            tile,
            n,
            place,
            there,
            picture_rows,
            picture_columns,
            outputs,
            adds,
            BM,
        )
        if stop != 0:
            x = tl.load(onto + place, mask=there, other=0.0).to(tl.float32)
            reached = x
            if stop == 1:
                reached = normed(x, tl.load(onto_factor + n), tl.load(onto_offset + n))
            acc = tl.where((reached > 0) & there, acc, 0.0)
        rounded = acc.to(out.dtype.element_ty)
        tl.store(out + place, rounded, mask=there)
        if stop != 0:
            g = rounded.to(tl.float32)
            total += g if turned else striped(g, warps)
            if stop == 1:
                a = g * (x - tl.load(onto_mean + n)[None, :])
                against += a if turned else striped(a, warps)
    if stop != 0:
        tl.store(totals + first * outputs + n, tl.sum(total, axis=0))
        if stop == 1:
            tl.store(againsts + first * outputs + n, tl.sum(against, axis=0))


def product_back(s, weight, end):
    """The gradient of a product's operand, and the sums of its norms: one row of them from each program."""
    rows, inner, outputs = s.upper.shape[0], *weight.shape
    out = torch.empty(rows, outputs, device=weight.device, dtype=weight.dtype)

    def launch(tile):
        tall, across, _, _, warps, _ = tile

        def arguments(strips):
            partial = torch.empty(2, strips, outputs, device=weight.device, dtype=torch.float32)
            return partial, (
                *s.matrices(), weight, out, *end.matrices(out), *partial, rows, *end.picture,
                inner, outputs, s.rectify, end.stop, end.adds, weight.dtype == torch.float32,
                *tile,
            )  # fmt: skip

        return walk(_product_back, arguments, warps, -(-rows // tall), outputs // across, weight.device)

    key = rows, inner, outputs, s.rectify, end.stop, end.adds, weight.dtype
    tried = candidates(inner, outputs)
    return out, launch(tuning.tuner.choose("product_back", key, tried, launch, weight.device))
