"""Training a transformer in OneFlow: parts of models, the data, the step, main; a family adds its model.

It trains eagerly on each rank's own tensors: the optimizers of OneFlow's graphs clip the gradients of each
group of parameters by themselves, and weight decay on matrices only needs two groups.
"""

import itertools
import math

from trainmark.workloads.common.frameworks import oneflow as framework  # joins the ranks, before all else

# isort: split
import numpy as np
import oneflow as flow
from oneflow import nn

from trainmark.workloads.transformers.spec import clip_factor, is_decayed
from trainmark.workloads.transformers.training import TransformerTraining, canonical_parameters

UNSEEN = -1e9  # added to a score: the exponential of it is zero in float32

# The model: parts that the families have in common


def attention(query, key, value, mask):
    """Return softmax(QKᵀ/√d)V of (batch, heads, length, head width); `mask` is added to the scores."""
    scores = flow.matmul(query, key.transpose(2, 3)) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores + mask
    return flow.matmul(flow.softmax(scores, dim=-1), value)


def split_heads(qkv, heads):
    """Return query, key and value as (batch, heads, length, head width)."""
    batch, length, width = qkv.shape
    parts = qkv.reshape(batch, length, 3, heads, width // 3 // heads).permute(2, 0, 3, 1, 4)
    return parts[0], parts[1], parts[2]


def join_heads(attended):
    batch, heads, length, head_width = attended.shape
    return attended.permute(0, 2, 1, 3).reshape(batch, length, heads * head_width)


def causal_mask(opt):
    later = np.triu(np.ones((opt.length, opt.length), np.float32), 1)
    return flow.tensor(later * np.float32(UNSEEN)).to(opt.device)


def tanh_gelu(x):
    """Return GELU by the hyperbolic tangent, composed: OneFlow 0.9 has the exact one."""
    return 0.5 * x * (1.0 + flow.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))


def draw(model, deviation, small=(), small_deviation=None):
    """Draw the initial weights; layers whose names end in one of `small` have a deviation of their own."""
    for name, module in model.named_modules():
        if isinstance(module, (nn.Linear, nn.Embedding)):
            is_small = bool(small) and name.endswith(small)
            nn.init.normal_(module.weight, std=small_deviation if is_small else deviation)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)


class Decoder(nn.Module):
    """A network of hidden states with its head: `forward` returns a micro-batch's share of the loss."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, tokens, targets, labels):
        return self.loss_sum(tokens, targets) / labels

    def loss_sum(self, tokens, targets):
        return entropy_sum(flow.matmul(self.network(tokens), self.network.head().transpose(0, 1)), targets)

    @staticmethod
    def normalizers(tokens, targets):
        """Return by what a step's losses are divided: its labels."""
        return (targets.numel(),)

    def evaluate(self, tokens, targets):
        return counts(self.loss_sum(tokens, targets), (targets >= 0).sum())


def entropy_sum(logits, labels):
    """Return the sum of the cross entropies of all labels that are not -1."""
    criterion = nn.CrossEntropyLoss(ignore_index=-1, reduction="sum")
    return criterion(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1).to(flow.int64))


def counts(*numbers):
    """Return the numbers of an evaluation as one tensor."""
    return flow.stack([number.to(flow.float64) for number in numbers])


def build_model(opt, build):
    flow.manual_seed(opt.seed)  # the same weights on every rank
    return build(opt).to(opt.device)


# The step


class FlatOptimizer:
    """AdamW or LAMB over all parameters as one flat tensor, in the order of matrices, then norms and biases.

    One tensor makes the update a few kernels, whatever the number of parameters, and one sum over the ranks.
    """

    def __init__(self, opt, network):
        self.opt, self.recipe = opt, opt.recipe
        named = canonical_parameters(network)
        decayed = [name for name in named if is_decayed(named[name].shape)]
        self.named = {name: named[name] for name in decayed}
        self.named.update((name, named[name]) for name in named if name not in self.named)
        self.sizes = [parameter.numel() for parameter in self.named.values()]
        self.matrices = len(decayed)
        matrix_numbers = sum(self.sizes[: self.matrices])
        decay = np.full(sum(self.sizes), opt.recipe.weight_decay, np.float32)
        decay[matrix_numbers:] = 0.0
        self.decay = flow.tensor(decay).to(opt.device)
        self.first, self.second = (flow.zeros_like(self.decay) for _ in range(2))
        self.steps = 0

    def parts(self, flat):
        """Return the parts of a flat tensor in the shapes of the parameters."""
        parts = flow.split(flat, self.sizes)
        return [part.reshape(*like.shape) for part, like in zip(parts, self.named.values())]

    def step(self, rate):
        """Average the gradients over the ranks, clip them to their global norm, and update."""
        recipe = self.recipe
        with flow.no_grad():
            gradient = flow.cat([parameter.grad.reshape(-1) for parameter in self.named.values()])
            if self.opt.world_size > 1:
                gradient = framework.sum_over_ranks(gradient) / self.opt.world_size
            # Tensor by tensor: one float32 sum of all the squares would lose digits.
            squares = flow.stack([(part * part).sum() for part in flow.split(gradient, self.sizes)])
            factor = clip_factor(flow.sqrt(squares.sum()), recipe.clip)
            gradient = gradient * flow.clamp(factor, max=1.0)
            self.steps += 1
            self.first = recipe.beta1 * self.first + (1 - recipe.beta1) * gradient
            self.second = recipe.beta2 * self.second + (1 - recipe.beta2) * gradient * gradient
            mean = self.first / (1 - recipe.beta1**self.steps)
            root = flow.sqrt(self.second / (1 - recipe.beta2**self.steps))
            weights = flow.cat([parameter.reshape(-1) for parameter in self.named.values()])
            direction = mean / (root + recipe.epsilon) + self.decay * weights
            if recipe.optimizer == "lamb":
                direction = self.apply_trust_ratios(weights, direction)
            moved = self.parts(weights - rate * direction)
            for parameter, value in zip(self.named.values(), moved):
                parameter.copy_(value)
                parameter.grad = None

    def apply_trust_ratios(self, weights, direction):
        """Scale the direction of each matrix by LAMB's trust ratio (You et al. 2020)."""
        scaled = []
        pairs = zip(flow.split(weights, self.sizes), flow.split(direction, self.sizes))
        for index, (weight, part) in enumerate(pairs):
            if index < self.matrices:
                norm, length = flow.sqrt((weight * weight).sum()), flow.sqrt((part * part).sum())
                positive = (norm * length > 0).to(flow.float32)
                part = part * (positive * norm / (length + (1 - positive)) + (1 - positive))
            scaled.append(part)
        return flow.cat(scaled)

    def moments(self):
        for flat, prefix in ((self.first, "first/"), (self.second, "second/")):
            for name, part in zip(self.named, self.parts(flat)):
                yield prefix + name, part

    def load_moments(self, momenta):
        """Set the moments by canonical name; to zero without any."""
        for attribute, prefix in (("first", "first/"), ("second", "second/")):
            flat = flow.zeros_like(self.decay)
            if momenta:
                values = np.concatenate([momenta[prefix + name].ravel() for name in self.named])
                flat = flow.tensor(values).to(self.opt.device)
            setattr(self, attribute, flat)


class Step:
    """Forward, backward and update of one batch in micro-batches; the loss stays on the device."""

    def __init__(self, opt, model):
        self.opt, self.model = opt, model
        self.optimizer = FlatOptimizer(opt, model.network)

    def __call__(self, batch, rate):
        normalizers = self.model.normalizers(*batch)
        total = 0.0
        for begin in range(0, self.opt.step_sequences, self.opt.batch):
            micro_batch = (part[begin : begin + self.opt.batch] for part in batch)
            loss = self.model(*micro_batch, *normalizers)
            loss.backward()
            total = total + loss.detach()
        self.optimizer.step(rate)
        return total


# Main


class Training(TransformerTraining, framework.Training):
    """The verbs of the loop; see `common/training.py`.

    `build(opt)` makes the family's model.
    """

    def __init__(self, opt, build):
        super().__init__(opt)
        self.model = build_model(opt, build)
        self.update = Step(opt, self.model)
        self.optimizer = self.update.optimizer

    def cycled(self, batches):
        pool = [self.place_on("cpu", *batch) for batch in batches]
        return (tuple(part.to(self.opt.device) for part in batch) for batch in itertools.cycle(pool))

    def feed(self, batches):
        return (self.place(*batch) for batch in batches)

    def step(self, *batch, rate):
        return self.update(batch, rate)

    def evaluate(self, *batch):
        with flow.no_grad():
            return self.model.evaluate(*batch).tolist

    def parameters(self):
        return sum(parameter.numel() for parameter in self.model.parameters())

    def load(self, values, momenta=None, rest=None):
        with flow.no_grad():
            for name, parameter in self.optimizer.named.items():
                parameter.copy_(flow.tensor(values[name]))
        self.optimizer.load_moments(momenta)
        self.optimizer.steps = int((rest or {}).get("adam_step", 0))

    def tensors(self):
        return on_host(self.optimizer.named.items())

    def momenta(self):
        return on_host(self.optimizer.moments())

    def rest(self):
        return {"adam_step": float(self.optimizer.steps)}

    def features(self):
        return {
            "attention": "written out",
            "compiled": False,
            "optimizer": "flat " + self.opt.recipe.optimizer,
        }


def on_host(named):
    return {name: tensor.detach().numpy().copy() for name, tensor in named}
