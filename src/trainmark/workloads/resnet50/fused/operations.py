"""The kernels where Triton runs, their twins elsewhere."""

import importlib.util

from trainmark.workloads.resnet50.fused import twins


def chosen(device):
    if device.type == "cuda" and importlib.util.find_spec("triton"):
        from trainmark.workloads.resnet50.fused import kernels

        return kernels
    return twins
