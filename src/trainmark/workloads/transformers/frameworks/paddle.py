"""Training a transformer in Paddle: parts of models, the data, the step, main; a family adds its model."""

import contextlib

from trainmark.workloads.common.frameworks import paddle as framework  # sets what Paddle's import reads

# isort: split
import numpy as np
import paddle
from paddle import nn
from paddle.distributed.fleet.utils import recompute
from paddle.nn import functional
from paddle.static import default_main_program

from trainmark.workloads.transformers.spec import is_decayed
from trainmark.workloads.transformers.training import TransformerTraining, canonical_parameters

# The model: parts that the families have in common


def linear(inputs, outputs, deviation):
    normal, zeros = nn.initializer.Normal(std=deviation), nn.initializer.Constant(0.0)
    return nn.Linear(inputs, outputs, weight_attr=normal, bias_attr=zeros)


def embedding(rows, width, deviation):
    return nn.Embedding(rows, width, weight_attr=nn.initializer.Normal(std=deviation))


def attention(opt):
    """Return the attention of `engine`: Paddle's own, or written out."""
    return fused_attention if has_fused_attention(opt) else written_out_attention


def has_fused_attention(opt):
    """Whether Paddle's own attention is used: its kernels are for GPUs and halves only."""
    return opt.engine == "stock" and opt.device == "cuda" and opt.precision in framework.HALF


def fused_attention(query, key, value, causal, mask=None):
    """Return softmax(QKᵀ/√d)V of (batch, length, heads, head width)."""
    if mask is not None:
        mask = mask.expand([-1, -1, query.shape[1], -1])  # the kernel has no broadcast over queries
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=causal)


def written_out_attention(query, key, value, causal, mask=None):
    """Return the same in single operations; `mask` is True where a key is to be seen."""
    query, key, value = (part.transpose([0, 2, 1, 3]) for part in (query, key, value))
    scores = paddle.matmul(query, key, transpose_y=True) / query.shape[-1] ** 0.5
    if causal:
        mask = paddle.ones(scores.shape[-2:], dtype="bool").tril()
    if mask is not None:
        unseen = paddle.full([], float("-inf"), dtype=scores.dtype)
        scores = paddle.where(mask, scores, unseen)
    weights = functional.softmax(scores.astype("float32"), axis=-1).astype(value.dtype)
    return paddle.matmul(weights, value).transpose([0, 2, 1, 3])


def block_runner(opt):
    """Return how a block is run: as it is, or so that backward computes its activations again."""
    if opt.recompute == "blocks":
        return lambda block, *inputs: recompute(block, *inputs)
    return lambda block, *inputs: block(*inputs)


class Decoder(nn.Layer):
    """A network of hidden states with its head: `forward` returns a micro-batch's share of the loss."""

    def __init__(self, opt, network):
        super().__init__()
        self.network = network

    def forward(self, tokens, targets, labels):
        return self.loss_sum(tokens, targets) / labels

    def loss_sum(self, tokens, targets):
        logits = paddle.matmul(self.network(tokens), self.network.head, transpose_y=True)
        return entropy_sum(logits.astype("float32"), targets)

    @staticmethod
    def normalizers(tokens, targets):
        """Return by what a step's losses are divided: its labels."""
        return (targets.size,)

    def evaluate(self, tokens, targets):
        counted = (targets >= 0).astype("float64").sum()
        return paddle.stack([self.loss_sum(tokens, targets).astype("float64"), counted])


def entropy_sum(logits, labels):
    """Return the sum of the cross entropies of all labels that are not -1."""
    logits, labels = logits.reshape([-1, logits.shape[-1]]), labels.reshape([-1]).astype("int64")
    return functional.cross_entropy(logits, labels, ignore_index=-1, reduction="sum")


def is_static(opt):
    """Whether the model is compiled into a static graph; Paddle recomputes activations in eager mode only."""
    return opt.engine == "stock" and opt.recompute == "none"


def build_model(opt, build):
    """Return the layer, drawn from the seed, and the same as it is run."""
    paddle.seed(opt.seed)  # the same weights on every rank
    model = build(opt)
    if is_static(opt):
        backend = "CINN" if opt.compile else None
        model.evaluate = paddle.jit.to_static(model.evaluate, backend=backend, full_graph=True)
        model = paddle.jit.to_static(model, backend=backend, full_graph=True)
    return model, (paddle.DataParallel(model) if opt.world_size > 1 else model)


def turned(name, value):
    """A linear layer's weight is (inputs, outputs) here; turning it twice gives it back."""
    is_linear = value.ndim == 2 and "embedding" not in name
    return np.ascontiguousarray(value.T if is_linear else value)


# The step


class Step:
    """Forward, backward and update of one batch in micro-batches; the loss stays on the device."""

    def __init__(self, opt, model, run):
        self.opt, self.model, self.run = opt, model, run
        self.autocast = framework.make_autocast(opt)
        self.named = canonical_parameters(model.network)
        self.optimizer = make_optimizer(opt.recipe, list(self.named.values()))
        self.scaler = framework.LossScale(opt)

    def __call__(self, *batch):
        normalizers = self.model.normalizers(*batch)
        micro_batches = [batch]
        if self.opt.accumulate > 1:
            micro_batches = list(zip(*(part.chunk(self.opt.accumulate) for part in batch)))
        total = 0.0
        for index, micro_batch in enumerate(micro_batches):
            with self.unreduced() if index + 1 < len(micro_batches) else contextlib.nullcontext():
                with self.autocast():
                    loss = self.run(*micro_batch, *normalizers)
                self.scaler.scale(loss).backward()
            total = total + loss.detach()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.clear_grad(set_to_zero=False)
        return total

    def unreduced(self):
        """Let the ranks keep their gradients to themselves until the last micro-batch."""
        return self.run.no_sync() if self.run is not self.model else contextlib.nullcontext()

    def moments(self):
        """Of every tensor by its canonical name."""
        for state, prefix in (("moment1", "first/"), ("moment2", "second/")):
            for name, parameter in self.named.items():
                yield prefix + name, self.optimizer._accumulators[state][parameter.name]

    def powers(self):
        """The betas to the power of the next step's number, which every tensor has of its own."""
        for state in ("beta1_pow_acc", "beta2_pow_acc"):
            known = self.optimizer._accumulators[state]
            yield state, [known[parameter.name] for parameter in self.named.values()]


def make_optimizer(recipe, parameters):
    """Return Paddle's AdamW or LAMB with decay on matrices only, its moments made."""
    decayed = {parameter.name for parameter in parameters if is_decayed(parameter.shape)}
    shared = {
        "learning_rate": 0.0,
        "beta1": recipe.beta1,
        "beta2": recipe.beta2,
        "epsilon": recipe.epsilon,
        "parameters": parameters,
        "grad_clip": nn.ClipGradByGlobalNorm(recipe.clip),
    }
    if recipe.optimizer == "lamb":
        optimizer = paddle.optimizer.Lamb(
            lamb_weight_decay=recipe.weight_decay,
            exclude_from_weight_decay_fn=lambda parameter: parameter.name not in decayed,
            **shared,
        )
    else:
        optimizer = paddle.optimizer.AdamW(
            weight_decay=recipe.weight_decay, apply_decay_param_fun=decayed.__contains__, **shared
        )
    # Left to itself the optimizer has no moments before the first step, and none could be loaded.
    optimizer._create_accumulators(default_main_program().global_block(), parameters)
    return optimizer


# Main


class Training(TransformerTraining, framework.Training):
    """The verbs of the loop; see `common/training.py`.

    `build(opt)` makes the family's model.
    """

    def __init__(self, opt, build):
        super().__init__(opt)
        self.model, run = build_model(opt, build)
        self.update = Step(opt, self.model, run)

    def feed(self, batches):
        return framework.loaded(batches, self.opt)

    def step(self, *batch, rate):
        self.update.optimizer.set_lr(rate)
        return self.update(*batch)

    @paddle.no_grad()
    def evaluate(self, *batch):
        with self.update.autocast():
            return self.model.evaluate(*batch).tolist

    def parameters(self):
        return sum(parameter.size for parameter in self.model.parameters())

    def load(self, values, momenta=None, rest=None):
        for name, parameter in self.update.named.items():
            parameter.set_value(turned(name, values[name]))
        for name, moment in self.update.moments():
            moment.set_value(turned(name, momenta[name])) if momenta else moment.zero_()
        recipe = self.opt.recipe
        rest = rest or {"beta1_pow_acc": recipe.beta1, "beta2_pow_acc": recipe.beta2}
        for state, powers in self.update.powers():
            for power in powers:
                power.fill_(rest[state])
        if "scale" in rest:
            self.update.scaler.load_numbers(rest)

    def tensors(self):
        return on_host(self.update.named.items())

    def momenta(self):
        return on_host(self.update.moments())

    def rest(self):
        # As they are in float32: powers of the number of steps are not the same to the last bit.
        powers = {state: tensors[0].item() for state, tensors in self.update.powers()}
        return dict(powers, **self.update.scaler.numbers())

    def features(self):
        return {
            "attention": "scaled_dot_product_attention" if has_fused_attention(self.opt) else "written out",
            "compiled": is_static(self.opt) and ("CINN" if self.opt.compile else "to_static"),
            "optimizer": "paddle.optimizer." + type(self.update.optimizer).__name__,
        }


def on_host(named):
    return {name: turned(name, tensor.numpy()) for name, tensor in named}
