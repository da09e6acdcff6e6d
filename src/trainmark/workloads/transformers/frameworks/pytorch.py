"""Training a transformer in PyTorch: parts of models, the data, the step, main; a family adds its model."""

import contextlib

import torch
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from trainmark.workloads.common import optimizer
from trainmark.workloads.common.frameworks import pytorch as framework
from trainmark.workloads.common.gradient_clock import Untimed
from trainmark.workloads.transformers.frameworks.pytorch_optimizers import make_optimizer, shard
from trainmark.workloads.transformers.training import TransformerTraining

# The model: parts that the families have in common


def attention(opt):
    """Return the attention of `engine`: the fastest kernel that PyTorch has here, or written out."""
    return written_out_attention if opt.engine == "plain" else fused_attention


def fused_attention(query, key, value, causal, mask=None):
    """Return softmax(QKᵀ/√d)V of (batch, heads, length, head width); key/value heads may be fewer."""
    grouped = query.shape[1] != key.shape[1]
    return functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=causal, **({"enable_gqa": True} if grouped else {})
    )


def written_out_attention(query, key, value, causal, mask=None):
    """Return the same in single operations; `mask` is True where a key is to be seen."""
    repeats = query.shape[1] // key.shape[1]
    key, value = (part.repeat_interleave(repeats, 1) for part in (key, value))
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    if causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1, dtype=torch.float32).to(value.dtype) @ value


def block_runner(opt):
    """Return how a block is run: as it is, or so that backward computes its activations again."""
    if opt.recompute == "blocks":
        return lambda block, *inputs: checkpoint(block, *inputs, use_reentrant=False)
    return lambda block, *inputs: block(*inputs)


class Decoder(nn.Module):
    """A network of hidden states with its head: `forward` returns a micro-batch's share of the loss."""

    def __init__(self, opt, network):
        super().__init__()
        self.network = network
        self.head_loss = make_head_loss(opt)

    def forward(self, tokens, targets, labels):
        return self.loss_sum(tokens, targets) / labels

    def loss_sum(self, tokens, targets):
        return self.head_loss(self.network(tokens), self.network.head_weight, targets)

    @staticmethod
    def normalizers(tokens, targets):
        """Return by what a step's losses are divided: its labels."""
        return (targets.numel(),)

    def evaluate(self, tokens, targets):
        return torch.stack([self.loss_sum(tokens, targets).double(), (targets >= 0).sum()])


def make_head_loss(opt):
    """Return the head with its loss: our kernel where weights are bfloat16 on a GPU, else PyTorch's."""
    if has_half_weights(opt) and opt.device == "cuda":
        from trainmark.workloads.transformers.frameworks.pytorch_head_loss import (
            head_loss as fused_head_loss,
        )

        return fused_head_loss
    return torch.compile(head_loss, mode=opt.compile) if opt.compile else head_loss


def head_loss(hidden, head, labels, bias=None):
    """Return the sum of the cross entropies of all labels that are not -1, in float32."""
    return loss_sum(functional.linear(hidden, head, bias).float(), labels)


def loss_sum(logits, labels):
    labels = labels.flatten().long()
    return functional.cross_entropy(logits.flatten(0, -2), labels, ignore_index=-1, reduction="sum")


def has_half_weights(opt):
    """Whether the weights are bfloat16, with float32 masters in the optimizer.

    Not with micro-batches: their gradients are added up in float32.
    """
    alone = opt.sharding == "none" and opt.accumulate == 1
    return opt.precision == "bf16" and opt.engine == "stock" and alone


def build_model(opt, device, build):
    """Return the module on the device, drawn from the seed, and the same as it is run."""
    torch.manual_seed(opt.seed)  # the same weights on every rank
    with torch.device(device):
        model = build(opt)
        model.network.initialize()
    if has_half_weights(opt):
        model.to(torch.bfloat16)
    if opt.compile:
        model.network.compile(mode=opt.compile)
    if opt.sharding == "fsdp":
        shard(model, model.network.blocks, framework.HALF.get(opt.precision), device)
    if opt.world_size == 1 or opt.sharding == "fsdp":
        return model, model
    local = [device.index] if device.type == "cuda" else None
    return model, DistributedDataParallel(model, local, gradient_as_bucket_view=True)


# The data


def loaded(device, batches):
    """Copy a loader's batches to the device."""
    batches = (tuple(map(torch.from_numpy, batch)) for batch in batches)
    if device.type == "cuda":
        return framework.prefetch(batches, device)
    return (tuple(part.clone() for part in batch) for batch in batches)


# The step


class Step:
    """Forward, backward and update of one batch in micro-batches; rate and loss stay on the device."""

    def __init__(self, opt, model, run, device):
        self.opt, self.model, self.run = opt, model, run
        watched = opt.sharding == "none"  # what the clock knows is DistributedDataParallel
        self.gradient_clock = framework.make_gradient_clock(opt, run, device) if watched else Untimed()
        self.autocast = make_autocast(opt, device)
        self.optimizer = make_optimizer(opt, model.network, device)
        self.scale = framework.LossScale(opt, device)

    def __call__(self, *batch):
        normalizers = self.model.normalizers(*batch)
        micro_batches = list(zip(*(part.chunk(self.opt.accumulate) for part in batch)))
        total = 0.0
        for index, micro_batch in enumerate(micro_batches):
            last = index + 1 == len(micro_batches)
            with self.unreduced() if not last else contextlib.nullcontext():
                with self.autocast():
                    loss = self.run(*micro_batch, *normalizers)
                with self.gradient_clock if last else contextlib.nullcontext():
                    (loss * self.scale.value).backward()
            total = total + loss.detach()
        self.optimizer.step(self.scale)
        return total

    @contextlib.contextmanager
    def unreduced(self):
        """Let the ranks keep their gradients to themselves until the last micro-batch."""
        if self.opt.sharding == "fsdp":
            self.model.set_requires_gradient_sync(False)
            yield
            self.model.set_requires_gradient_sync(True)
        elif self.run is not self.model:
            with self.run.no_sync():
                yield
        else:
            yield


def make_autocast(opt, device):
    """Return the context of the forward pass: FSDP casts by itself, and half weights need no casts."""
    if has_half_weights(opt) or opt.sharding == "fsdp":
        return contextlib.nullcontext
    return framework.make_autocast(opt, device)


# Main


class Training(TransformerTraining, framework.Training):
    """The verbs of the loop; see `common/training.py`.

    `build(opt)` makes the family's model.
    """

    def __init__(self, opt, build):
        super().__init__(opt)
        self.model, run = build_model(opt, self.device, build)
        self.update = Step(opt, self.model, run, self.device)
        self.gradient_clock = self.update.gradient_clock

    def feed(self, batches):
        return loaded(self.device, batches)

    def step(self, *batch, rate):
        self.update.optimizer.rate.fill_(rate)
        return self.update(*batch)

    @torch.no_grad()
    def evaluate(self, *batch):
        with self.update.autocast():
            return self.model.evaluate(*batch).tolist

    def parameters(self):
        return sum(parameter.numel() for parameter in self.model.parameters())

    @torch.no_grad()
    def load(self, values, momenta=None, rest=None):
        rest = rest or {}
        self.update.optimizer.load(values, momenta, rest.get("adam_step", 0.0))
        scale = rest.get("scale", optimizer.initial_loss_scale(self.opt))
        self.update.scale.load(scale, rest.get("growth", 0))

    def tensors(self):
        return framework.on_host(self.update.optimizer.weights())

    def momenta(self):
        return framework.on_host(self.update.optimizer.moments())

    def rest(self):
        scale = self.update.scale
        rest = {"adam_step": float(self.update.optimizer.steps)}
        return dict(rest, scale=float(scale.value), growth=float(scale.growth)) if scale.enabled else rest

    def features(self):
        fused = self.opt.engine == "stock"
        return {
            "attention": "scaled_dot_product_attention" if fused else "written out",
            "compiled": bool(self.opt.compile),
            "optimizer": self.update.optimizer.title,
            "weights": str(next(self.model.parameters()).dtype).replace("torch.", ""),
        }
