"""AdamW and LAMB in PyTorch, fused or written out, and the sharding of weights over the ranks (FSDP)."""

import os

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor

from trainmark.workloads.transformers.spec import clip_factor, is_decayed
from trainmark.workloads.transformers.training import canonical_parameters


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


def make_optimizer(opt, network, device):
    flat = opt.engine == "stock" and opt.sharding == "none"
    return (FlatOptimizer if flat else OwnAdamW)(opt, network, device)


class FlatOptimizer:
    """Holds matrices first, then norms and biases: weight decay is for the first part of the flat tensor."""

    def __init__(self, opt, network, device):
        self.recipe, self.title = opt.recipe, "flat " + opt.recipe.optimizer
        named = canonical_parameters(network)
        decayed = [name for name in named if is_decayed(named[name].shape)]
        ordered = decayed + [name for name in named if name not in set(decayed)]
        self.named = {name: named[name] for name in ordered}
        self.decayed = sum(named[name].numel() for name in decayed)
        self.flat = torch.cat([parameter.detach().flatten() for parameter in self.named.values()])
        for parameter, view in zip(self.named.values(), self.views(self.flat)):
            parameter.data = view
        self.master = self.flat if self.flat.dtype == torch.float32 else self.flat.float()
        self.first, self.second = (torch.zeros_like(self.master) for _ in range(2))
        self.rate, self.steps = (torch.zeros((), device=device) for _ in range(2))
        recipe = opt.recipe
        self.constants = recipe.beta1, recipe.beta2, recipe.epsilon
        updates = adamw_, adam_direction_, descend_
        if opt.compile:
            updates = (torch.compile(update, dynamic=False) for update in updates)
        self.adamw, self.adam_direction, self.descend = updates

    def views(self, flat):
        """Return the parts of a flat tensor in the shapes of the parameters."""
        sizes = [parameter.numel() for parameter in self.named.values()]
        return [part.view_as(like) for part, like in zip(flat.split(sizes), self.named.values())]

    @torch.no_grad()
    def step(self, scale):
        """Clip the gradient to its global norm and update; an overflow leaves everything as it was."""
        gradients = [parameter.grad for parameter in self.named.values()]
        # Tensor by tensor: one float32 sum of all the squares would lose the fourth digit on a CPU.
        norm = torch.stack(torch._foreach_norm(gradients, dtype=torch.float32)).norm() / scale.value
        gradient = torch.cat([part.flatten() for part in gradients])
        for parameter in self.named.values():
            parameter.grad = None
        finite = norm.isfinite()
        factor = clip_factor(norm, self.recipe.clip).clamp(max=1.0) / scale.value
        self.steps += finite
        update = self.lamb if self.recipe.optimizer == "lamb" else self.update_parts
        update(gradient, factor, finite)
        scale.update(1.0 - finite.float())

    def update_parts(self, gradient, factor, finite):
        """Update by AdamW, the part with weight decay and the part without."""
        state = gradient, self.flat, self.master, self.first, self.second
        matrices, others = slice(0, self.decayed), slice(self.decayed, None)
        for part, decay in ((matrices, self.recipe.weight_decay), (others, 0.0)):
            tensors = (tensor[part] for tensor in state)
            self.adamw(*tensors, factor, finite, self.steps, self.rate, decay, *self.constants)

    def lamb(self, gradient, factor, finite):
        """Update by LAMB: each matrix moves in proportion to its own norm."""
        moments = self.first, self.second
        direction = self.adam_direction(gradient, *moments, factor, finite, self.steps, *self.constants)
        direction[: self.decayed].add_(self.master[: self.decayed], alpha=self.recipe.weight_decay)
        views = zip(self.views(self.master), self.views(direction))
        matrices, directions = zip(*(pair for pair in views if is_decayed(pair[0].shape)))
        norms, lengths = (torch.stack(torch._foreach_norm(part)) for part in (matrices, directions))
        ratios = torch.where((norms > 0) & (lengths > 0), norms / lengths, torch.ones_like(norms))
        torch._foreach_mul_(directions, ratios.unbind())
        self.descend(self.flat, self.master, direction, finite, self.rate)

    def load(self, values, momenta, steps):
        for name, master, parameter in zip(self.named, self.views(self.master), self.named.values()):
            master.copy_(torch.from_numpy(values[name]))
            parameter.copy_(master)
        for flat, prefix in ((self.first, "first/"), (self.second, "second/")):
            for name, view in zip(self.named, self.views(flat)):
                view.copy_(torch.from_numpy(momenta[prefix + name])) if momenta else view.zero_()
        self.steps.fill_(steps)

    def weights(self):
        return zip(self.named, self.views(self.master))

    def moments(self):
        for flat, prefix in ((self.first, "first/"), (self.second, "second/")):
            for name, view in zip(self.named, self.views(flat)):
                yield prefix + name, view


def adam_direction_(gradient, first, second, factor, finite, steps, beta1, beta2, epsilon):
    """Move the moments, and return the direction of the step (Kingma & Ba 2015, bias corrected)."""
    gradient = gradient.float() * factor
    first.copy_(torch.where(finite, torch.lerp(gradient, first, beta1), first))
    second.copy_(torch.where(finite, torch.lerp(gradient * gradient, second, beta2), second))
    mean = first / (1 - beta1**steps)
    return mean / ((second / (1 - beta2**steps)).sqrt() + epsilon)


def descend_(weight, master, direction, finite, rate):
    """Move masters and weights in place against a direction."""
    master.copy_(torch.where(finite, master - rate * direction, master))
    if weight.dtype != master.dtype:
        weight.copy_(master)


def adamw_(
    gradient, weight, master, first, second, factor, finite, steps, rate, decay, beta1, beta2, epsilon
):
    """Update masters, moments and weights in place (Loshchilov & Hutter 2019)."""
    direction = adam_direction_(gradient, first, second, factor, finite, steps, beta1, beta2, epsilon)
    moved = master * (1 - rate * decay) - rate * direction
    master.copy_(torch.where(finite, moved, master))
    if weight.dtype != master.dtype:
        weight.copy_(master)


class OwnAdamW:
    """PyTorch's AdamW and clipping, over parameters that may be sharded."""

    def __init__(self, opt, network, device):
        self.recipe, self.named = opt.recipe, canonical_parameters(network)
        fused = opt.engine == "stock"
        self.title = "torch.optim.AdamW({})".format("fused" if fused else "foreach=False")
        groups = [{"params": [], "weight_decay": decay} for decay in (0.0, opt.recipe.weight_decay)]
        for parameter in self.named.values():
            groups[is_decayed(parameter.shape)]["params"].append(parameter)
        self.rate = torch.zeros((), device=device)
        self.optimizer = torch.optim.AdamW(
            groups,
            lr=self.rate if fused else 0.0,
            betas=(opt.recipe.beta1, opt.recipe.beta2),
            eps=opt.recipe.epsilon,
            **({"fused": True} if fused else {"foreach": False}),
        )
        self.reset()

    def reset(self):
        """Set the moments to zero: made here, they can be loaded before the first step."""
        for parameter in self.named.values():
            zeros = {"exp_avg": torch.zeros_like(parameter), "exp_avg_sq": torch.zeros_like(parameter)}
            step = torch.zeros((), device=parameter.device if self.optimizer.defaults["fused"] else "cpu")
            self.optimizer.state[parameter] = dict(zeros, step=step)

    @property
    def steps(self):
        return next(iter(self.optimizer.state.values()))["step"]

    @torch.no_grad()
    def step(self, scale):
        parameters = list(self.named.values())
        if scale.enabled:
            for parameter in parameters:
                parameter.grad.div_(scale.value)
        norm = full_tensor(nn.utils.clip_grad_norm_(parameters, self.recipe.clip))
        finite = norm.isfinite()
        if not self.optimizer.defaults["fused"]:
            for group in self.optimizer.param_groups:
                group["lr"] = float(self.rate)
        if not scale.enabled or bool(finite):  # only a loss scale is worth the wait for the device
            self.optimizer.step()
        scale.update(1.0 - finite.float())
        self.optimizer.zero_grad(set_to_none=True)

    def load(self, values, momenta, steps):
        for name, parameter in self.named.items():
            state = self.optimizer.state[parameter]
            copy_whole(parameter, torch.from_numpy(values[name]))
            for part, prefix in (("exp_avg", "first/"), ("exp_avg_sq", "second/")):
                if momenta:
                    copy_whole(state[part], torch.from_numpy(momenta[prefix + name]))
                else:
                    state[part].zero_()
            state["step"].fill_(steps)

    def weights(self):
        return ((name, full_tensor(parameter)) for name, parameter in self.named.items())

    def moments(self):
        for part, prefix in (("exp_avg", "first/"), ("exp_avg_sq", "second/")):
            for name, parameter in self.named.items():
                yield prefix + name, full_tensor(self.optimizer.state[parameter][part])
