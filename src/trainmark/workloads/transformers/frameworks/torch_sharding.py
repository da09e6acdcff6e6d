"""Fully sharded data parallelism in PyTorch (FSDP2): parameters as DTensors over all ranks."""

import os

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor


def shard(model, blocks, half, device):
    """Shard each block, then the rest; weights are stored in float32, gathered and used in `half`."""
    mesh = init_device_mesh(device.type, (int(os.environ["WORLD_SIZE"]),))
    policy = MixedPrecisionPolicy(param_dtype=half, reduce_dtype=torch.float32)
    for block in blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    register_fsdp_forward_method(model, "evaluate")  # which gathers the weights as `forward` does


def full_tensor(tensor):
    """Return the whole of a tensor that may be sharded; all ranks call it together."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def copy_whole(target, whole):
    """Copy a whole tensor, the same on all ranks, into one that may be sharded."""
    if isinstance(target, DTensor):
        whole = whole.to(target.device, target.dtype)
        whole = distribute_tensor(whole, target.device_mesh, target.placements, src_data_rank=None)
    target.copy_(whole)
