"""Back from the mean over every image's places."""

import torch
import triton
import triton.language as tl

from trainmark.workloads.resnet50.fused.kernels.persistent import strips, tile_shape
from trainmark.workloads.resnet50.fused.kernels.reading import tile_of


@triton.jit
def _head_back(
    gradient, value, out, totals, rows, places,
    channels: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    m = tl.arange(0, BM)
    total = tl.zeros([BM, BC], tl.float32)
    for tile in range(tl.program_id(0), tl.cdiv(rows, BM), tl.num_programs(0)):
        place, there = tile_of(tile, c, rows, channels, BM)
        image = (tile * BM + m) // places
        g = tl.load(gradient + image[:, None] * channels + c[None, :], mask=there, other=0.0)
        passes = tl.load(value + place, mask=there, other=0.0) > 0
        stopped = tl.where(passes, g.to(tl.float32) / places, 0.0).to(out.dtype.element_ty)
        tl.store(out + place, stopped, mask=there)
        total += stopped.to(tl.float32)
    tl.store(totals + tl.program_id(0) * channels + c, tl.sum(total, axis=0))


def head_back(gradient, onto, images):
    """From the gradient of every image's mean to that of the last block, and its sums."""
    rows, width = onto.value.shape
    tall, across = tile_shape(width)
    count = strips(rows, tall, across, width, gradient.device)
    out = torch.empty_like(onto.value)
    totals = torch.empty(count, width, device=gradient.device, dtype=torch.float32)
    _head_back[(count, width // across)](
        gradient, onto.value, out, totals, rows, rows // images, width, tall, across,
    )  # fmt: skip
    return out, totals
