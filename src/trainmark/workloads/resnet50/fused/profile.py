"""Where the time of a fused step goes: `python -m trainmark.workloads.resnet50.fused.profile --batch 256`.

Every operation of one step is timed by itself, beside the least that the device could need: its bytes, each
read or written once, over the bandwidth of a copy, or its products over the rate of a large one.
"""

import argparse
import dataclasses

import torch
import triton

from trainmark.workloads.common import kernel_tuning as tuning
from trainmark.workloads.common.frameworks.pytorch import HALF
from trainmark.workloads.resnet50.fused import triton_ops
from trainmark.workloads.resnet50.fused.network import ExpandedNorm, Passes
from trainmark.workloads.resnet50.fused.step import FlatParameters
from trainmark.workloads.resnet50.pytorch import ResNet50

DTYPES = {"fp32": torch.float32, **HALF}
# Products of every row with the weights, and where the convolution stands among what is given.
PRODUCTS = {"conv1x1": (1, 1), "expand": (1, 1), "conv1x1_backward": (2, 2), "expand_backward": (2, 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--precision", choices=DTYPES, default="amp")
    opt = parser.parse_args()
    device, kind = torch.device("cuda"), DTYPES[opt.precision]
    bandwidth, rate = copy_bandwidth(device), matmul_rate(device, kind)
    print("copy {:.2f} TB/s, products {:.0f} TFLOP/s".format(bandwidth / 1e12, rate / 1e12))
    torch.manual_seed(0)
    watched = TimedOperations(triton_ops)
    passes = Passes(FlatParameters(ResNet50().to(device), kind), watched)
    images = torch.randn(opt.batch, 3, opt.image_size, opt.image_size, device=device)
    with torch.no_grad():
        features = passes.forward(images)
        gradient = torch.randn(opt.batch, features.shape[1], device=device, dtype=kind) / 1e3
        for _ in passes.backward(gradient):
            pass
    show(watched.seen, bandwidth, rate)


class TimedOperations:
    """The operations, each timed when it is called."""

    def __init__(self, operations):
        self.operations, self.seen = operations, {}

    def __getattr__(self, name):
        operation = getattr(self.operations, name)

        def timed(*inputs, **more):
            out = operation(*inputs, **more)
            took = tuning.milliseconds(lambda: operation(*inputs, **more))
            facts = operand_shape(name, inputs), bytes_moved(inputs, more, out), product_flops(name, inputs)
            times = self.seen.setdefault((name, *facts), [])
            times.append(took / 1e3)
            return out

        return timed


def operand_shape(name, inputs):
    return " ".join("×".join(map(str, each.shape)) for each in tensors(inputs[:1]) if each.ndim > 1)


def tensors(things):
    """Every tensor in these, those of dataclasses included, each once."""
    seen = {}
    for thing in things:
        if isinstance(thing, torch.Tensor):
            seen.setdefault((thing.data_ptr(), thing.shape), thing)
        elif dataclasses.is_dataclass(thing):
            parts = [getattr(thing, field.name) for field in dataclasses.fields(thing)]
            seen.update(((each.data_ptr(), each.shape), each) for each in tensors(parts))
        elif isinstance(thing, (list, tuple)):
            seen.update(((each.data_ptr(), each.shape), each) for each in tensors(thing))
    return list(seen.values())


def bytes_moved(inputs, more, out):
    """The fewest bytes: each tensor once; what widened is not read on the way back, only what it read."""
    read = [each.operand if isinstance(each, ExpandedNorm) else each for each in inputs]
    return sum(each.numel() * each.element_size() for each in tensors([read, list(more.values()), out]))


def product_flops(name, inputs):
    """Floating-point operations of the products in it."""
    if name in PRODUCTS:
        times, at = PRODUCTS[name]
        return 2 * times * tensors(inputs[:1])[0].shape[0] * inputs[at].weight.numel()
    if name in ("conv3x3", "conv3x3_backward"):
        (images, rows, columns), stride = inputs[-2], inputs[-1]
        weight = inputs[1] if name == "conv3x3" else inputs[2].weight
        places = images * -(-rows // stride) * -(-columns // stride)
        return 2 * (1 if name == "conv3x3" else 2) * places * weight.numel()
    return 0


def copy_bandwidth(device):
    source = torch.empty(2**30, device=device)
    target = torch.empty_like(source)
    took = triton.testing.do_bench(lambda: target.copy_(source), return_mode="median")
    return 2 * source.numel() * 4 / (took / 1e3)


def matmul_rate(device, kind):
    a, b = (torch.randn(8192, 8192, device=device, dtype=kind) for _ in range(2))
    return 2 * 8192**3 / (triton.testing.do_bench(lambda: a @ b, return_mode="median") / 1e3)


def show(seen, bandwidth, rate):
    lines, by_name = [], {}
    for (name, shape, size, work), times in seen.items():
        floor = max(size / bandwidth, work / rate) * len(times)
        lines.append((sum(times), floor, len(times), name, shape))
        took, least = by_name.get(name, (0.0, 0.0))
        by_name[name] = took + sum(times), least + floor
    print("{:>9} {:>9} {:>6} {:>3}  {}".format("ms", "floor ms", "share", "×", "operation"))
    for took, floor, count, name, shape in sorted(lines, reverse=True)[:60]:
        share = 100 * floor / took
        print(
            "{:9.3f} {:9.3f} {:5.0f}% {:3d}  {} {}".format(took * 1e3, floor * 1e3, share, count, name, shape)
        )
    print()
    for name, (took, floor) in sorted(by_name.items(), key=lambda item: -item[1][0]):
        print("{:9.3f} {:9.3f} {:5.0f}%      {}".format(took * 1e3, floor * 1e3, 100 * floor / took, name))
    whole, floor = sum(took for took, _ in by_name.values()), sum(floor for _, floor in by_name.values())
    print("{:9.3f} {:9.3f} {:5.0f}%      all".format(whole * 1e3, floor * 1e3, 100 * floor / whole))


if __name__ == "__main__":
    main()
