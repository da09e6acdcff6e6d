"""The kernels on a CUDA device, their twins elsewhere."""

from trainmark.workloads.resnet50.fused import twins


def chosen(device):
    if device.type == "cuda":
        from trainmark.workloads.resnet50.fused import kernels

        return kernels
    return twins
