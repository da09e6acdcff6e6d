"""Transformers in MXNet, whatever the family: the data, the step and its optimizers, main."""

import itertools
import math

import mxnet as mx
import numpy as np
from mxnet import autograd
from mxnet.gluon import nn

from trainmark.workloads.common.frameworks import mxnet as framework
from trainmark.workloads.transformers.spec import clip_factor, is_decayed
from trainmark.workloads.transformers.training import TransformerTraining

SQUARED_TOGETHER = 2**16  # elements: one float32 sum of all the squares would lose the fourth digit


def make_buckets(opt, named):
    """Return the parameters in buckets that the recipe's optimizer updates."""
    kind = Lamb if opt.recipe.optimizer == "lamb" else FusedAdamW if opt.engine == "stock" else AdamW
    return [kind(opt.recipe, part, opt.accumulate > 1) for part in framework.buckets(named)]


class AdamW(framework.Bucket):
    """AdamW (Loshchilov & Hutter 2019) in single operations."""

    title = "AdamW, written out"

    def __init__(self, recipe, named, accumulated):
        super().__init__(named, accumulated)
        self.recipe = recipe
        self.first, self.second = ([mx.nd.zeros_like(weight) for weight in self.weights] for _ in range(2))
        self.decays = [recipe.weight_decay * is_decayed(weight.shape) for weight in self.weights]

    def moments(self):
        """Return the arrays of both moments by the names that a checkpoint has."""
        for prefix, moments in (("first/", self.first), ("second/", self.second)):
            for name, moment in zip(self.names, moments):
                yield prefix + name, moment

    def sum_of_squares(self):
        """Return that of the gradients, once they are there."""
        self.flat.wait_to_read()
        starts = range(0, len(self.buffer), SQUARED_TOGETHER)
        parts = (self.buffer[start : start + SQUARED_TOGETHER] for start in starts)
        return sum(float(np.dot(part, part)) for part in parts)

    def update(self, rate, factor, steps):
        """Update by the gradients times `factor`, in the step of this number from 1."""
        beta1, beta2, epsilon = self.recipe.beta1, self.recipe.beta2, self.recipe.epsilon
        self.flat *= factor
        state = self.weights, self.gradients, self.first, self.second, self.decays
        for weight, gradient, first, second, decay in zip(*state):
            first[:] = beta1 * first + (1 - beta1) * gradient
            second[:] = beta2 * second + (1 - beta2) * gradient * gradient
            deviation = mx.nd.sqrt(second / (1 - beta2**steps)) + epsilon
            weight[:] = weight * (1 - rate * decay) - rate * (first / (1 - beta1**steps)) / deviation


class FusedAdamW(AdamW):
    """The same by MXNet's operation for many tensors at once."""

    title = "AdamW, multi_adamw_update"

    def update(self, rate, factor, steps):
        recipe, count = self.recipe, len(self.weights)
        # The operation corrects no bias: so the rate does, and epsilon takes the second moment's.
        correction = math.sqrt(1 - recipe.beta2**steps)
        mx.nd.contrib.multi_adamw_update(
            *(self.weights, self.gradients, self.first, self.second),
            rescale_grad=factor,
            lrs=[rate * correction / (1 - recipe.beta1**steps)] * count,
            wds=[rate * decay for decay in self.decays],
            etas=[1.0] * count,
            out=self.weights,
            beta1=recipe.beta1,
            beta2=recipe.beta2,
            epsilon=recipe.epsilon * correction,
        )


class Lamb(AdamW):
    """LAMB (You et al. 2020) by MXNet's operations, a tensor at a time."""

    title = "LAMB, lamb_update"

    def update(self, rate, factor, steps):
        recipe = self.recipe
        state = self.weights, self.gradients, self.first, self.second, self.decays
        for weight, gradient, first, second, decay in zip(*state):
            direction = mx.nd.lamb_update_phase1(
                *(weight, gradient, first, second),
                beta1=recipe.beta1,
                beta2=recipe.beta2,
                epsilon=recipe.epsilon,
                t=steps,
                bias_correction=True,
                wd=decay,
                rescale_grad=factor,
            )
            # Norms of zero stand for a trust ratio of 1, which norms and biases have.
            matrix = is_decayed(weight.shape)
            norms = [part.norm() if matrix else mx.nd.zeros((1,)) for part in (weight, direction)]
            mx.nd.lamb_update_phase2(weight, direction, *norms, lr=rate, out=weight)


# The model: parts that the families have in common. Gluon passes the array or the symbol namespace as F.


def linear(inputs, outputs, deviation):
    return nn.Dense(outputs, flatten=False, in_units=inputs, weight_initializer=mx.init.Normal(deviation))


def embedding(count, width, deviation):
    return nn.Embedding(count, width, weight_initializer=mx.init.Normal(deviation))


def tied_head(table, use_bias=False):
    """Return the head whose weight is that of the token embedding `table`."""
    count, width = table.weight.shape
    return nn.Dense(count, flatten=False, use_bias=use_bias, in_units=width, params=table.params)


def fused_attention(F, qkv, lengths, heads):  # noqa: N803
    """Return softmax(QKᵀ/√d)V; a query sees as many keys as `lengths` (sequences x heads, length) says.

    Without lengths it sees all. The last axis of `qkv` has query, key and value of the first head, then of
    the next.
    """
    scores = F.contrib.interleaved_matmul_selfatt_qk(qkv, heads=heads)
    return F.contrib.interleaved_matmul_selfatt_valatt(qkv, softmax(F, scores, lengths), heads=heads)


def written_out_attention(F, qkv, lengths, heads):  # noqa: N803
    """Return the same in single operations."""
    by_head = F.transpose(F.reshape(qkv, (0, 0, heads, 3, -1)), (3, 1, 2, 0, 4))
    query, key, value = (
        F.reshape(part, (-3, 0, 0)) for part in F.split(by_head, 3, axis=0, squeeze_axis=True)
    )
    scores = F.batch_dot(F.contrib.div_sqrt_dim(query), key, transpose_b=True)
    merged = F.batch_dot(softmax(F, scores, lengths), value)
    return F.reshape(F.transpose(F.reshape(merged, (-4, -1, heads, 0, 0)), (2, 0, 1, 3)), (0, 0, -3))


def softmax(F, scores, lengths):  # noqa: N803
    return F.softmax(scores) if lengths is None else F.softmax(scores, lengths, use_length=True)


def attention(opt):
    return written_out_attention if opt.engine == "plain" else fused_attention


def gelu_tanh(F, x):  # noqa: N803
    """GELU by tanh; MXNet's own is the exact one. (1 + tanh(u)) / 2 is sigmoid(2u): one operation less."""
    factor = 2 * math.sqrt(2 / math.pi)
    return x * F.sigmoid(x * (factor + factor * 0.044715 * F.square(x)))


def loss_sum(F, logits, labels):  # noqa: N803
    """Return the sum of the cross entropies of all labels that are not -1."""
    chosen = F.pick(F.log_softmax(logits), F.maximum(labels, 0))
    return -F.sum(F.where(labels >= 0, chosen, F.zeros_like(chosen)))


class Decoder(nn.HybridBlock):
    """A network of hidden states with its head: the sum of a micro-batch's losses."""

    def __init__(self, network):
        super().__init__()
        self.network, self.head = network, tied_head(network.token_embedding)

    def hybrid_forward(self, F, tokens, targets):  # noqa: N803
        logits = self.head(self.network(F.transpose(tokens)))
        return loss_sum(F, logits, F.transpose(targets))

    def loss(self, tokens, targets, labels):
        return self(tokens, targets) / labels

    @staticmethod
    def normalizers(tokens, targets):
        """Return by what a step's losses are divided: its labels."""
        return (targets.size,)

    def evaluate(self, tokens, targets):
        labels = (targets >= 0).sum().astype(np.float32)
        return mx.nd.concat(self(tokens, targets), labels, dim=0).asnumpy


def named_parameters(network):
    """Return every parameter by its canonical name: a norm's gamma and beta are its scale and bias."""
    named = network._collect_params_with_prefix()  # as `save_parameters` calls them
    named.pop("head.weight", None)  # that of the token embedding
    return {name.replace(".gamma", ".scale").replace(".beta", ".bias"): named[name] for name in named}


def canonical(name, value, heads):
    """Return an array in the canonical layout: queries of all heads, then keys, then values."""
    return swap_heads(value, heads, 3) if ".qkv." in name else value


def dialect(name, value, heads):
    """Return the reverse: query, key and value of the first head, then of the next."""
    return swap_heads(value, 3, heads) if ".qkv." in name else value


def swap_heads(value, outer, inner):
    return value.reshape((outer, inner, -1, *value.shape[1:])).swapaxes(0, 1).reshape(value.shape)


# The step


class Step:
    """Forward, backward and update of one batch in micro-batches; `ranks` is None where there is but one."""

    def __init__(self, opt, model, ranks):
        self.opt, self.model, self.ranks, self.recipe = opt, model, ranks, opt.recipe
        if opt.engine == "stock":
            model.hybridize(static_alloc=True, static_shape=True)
        self.buckets = make_buckets(opt, named_parameters(model.network))
        self.steps = 0

    def __call__(self, batch, rate):
        count, normalizers = self.opt.accumulate, self.model.normalizers(*batch)
        micro_batches = zip(*(mx.nd.split_v2(part, count) for part in batch)) if count > 1 else [batch]
        if count > 1:
            for bucket in self.buckets:
                bucket.flat[:] = 0
        total = 0.0
        for micro_batch in micro_batches:
            with autograd.record():
                loss = self.model.loss(*micro_batch, *normalizers)
            loss.backward()
            total = total + loss
        self.update(rate)
        mx.nd.waitall()  # the engine runs behind the host, and cannot be asked when it has passed a step
        return total

    def update(self, rate):
        """Average the gradient over the ranks, clip it to its global norm, and update."""
        squares, share = 0.0, 1.0
        for bucket in self.buckets:
            if self.ranks is not None:
                bucket.sum_over(self.ranks)
                share = 1.0 / self.ranks.size
            squares += bucket.sum_of_squares()
        factor = min(1.0, clip_factor(math.sqrt(squares) * share, self.recipe.clip))
        self.steps += 1
        for bucket in self.buckets:
            bucket.update(rate, factor * share, self.steps)


# Main


class Training(TransformerTraining, framework.Training):
    """The verbs of the loop; see `common/training.py`.

    `build(opt)` makes the family's model.
    """

    def __init__(self, opt, build):
        super().__init__(opt)
        mx.random.seed(opt.seed)  # the same weights on every rank
        self.model = build(opt)
        self.model.initialize()
        self.named = named_parameters(self.model.network)
        self.update = Step(opt, self.model, self.ranks)

    def place(self, *arrays):
        return tuple(mx.nd.array(array, dtype=np.int32) for array in arrays)

    def feed(self, batches):
        return (self.place(*batch) for batch in batches)

    def step(self, *batch, rate):
        return self.update(batch, rate)

    def evaluate(self, *batch):
        return self.model.evaluate(*batch)

    def parameters(self):
        return sum(parameter.data().size for parameter in self.named.values())

    def load(self, values, momenta=None, rest=None):
        heads = self.opt.shape.heads
        for name, parameter in self.named.items():
            parameter.set_data(mx.nd.array(dialect(name, values[name], heads)))
        for name, moment in self.moments():
            moment[:] = mx.nd.array(dialect(name, momenta[name], heads)) if momenta else 0
        self.update.steps = int((rest or {}).get("adam_step", 0))

    def tensors(self):
        return self.on_host((name, parameter.data()) for name, parameter in self.named.items())

    def momenta(self):
        return self.on_host(self.moments())

    def moments(self):
        return itertools.chain.from_iterable(bucket.moments() for bucket in self.update.buckets)

    def on_host(self, named):
        return {name: canonical(name, array.asnumpy(), self.opt.shape.heads) for name, array in named}

    def rest(self):
        return {"adam_step": float(self.update.steps)}

    def features(self):
        stock = self.opt.engine == "stock"
        return {
            "attention": "interleaved_matmul_selfatt" if stock else "written out",
            "compiled": "hybridized" if stock else False,
            "optimizer": self.update.buckets[0].title,
            "weights": "float32",
        }
