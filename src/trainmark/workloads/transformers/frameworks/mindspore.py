"""Training a transformer in MindSpore: parts of models, the data, the step, main; a family adds its model."""

from trainmark.workloads.common.frameworks import mindspore as framework  # sets what MindSpore's import reads

# isort: split
import mindspore as ms
import numpy as np
from mindspore import amp, nn, ops
from mindspore.common.initializer import Normal

from trainmark.workloads.transformers.spec import clip_factor, is_decayed
from trainmark.workloads.transformers.training import TransformerTraining

# The model: parts that the families have in common


def linear(inputs, outputs, deviation):
    return nn.Dense(inputs, outputs, weight_init=Normal(deviation), bias_init="zeros")


def embedding(rows, width, deviation):
    return nn.Embedding(rows, width, embedding_table=Normal(deviation))


def norm(width, epsilon):
    return nn.LayerNorm((width,), epsilon=epsilon)


class Attention(nn.Cell):
    """softmax(QKᵀ/√d)V written out: MindSpore's fused kernel is for Ascend only.

    `qkv` is (batch, length, 3 · width); `mask` is True where a key is to be seen.
    """

    def __init__(self, opt):
        super().__init__()
        self.heads, self.head_width = opt.shape.heads, opt.shape.head_width
        self.product = ops.BatchMatMul(transpose_b=True)
        self.unseen = ms.Tensor(-np.inf, ms.float32)

    def construct(self, qkv, mask):
        batch, length, width = qkv.shape
        parts = qkv.reshape((batch, length, 3, self.heads, self.head_width)).transpose((2, 0, 3, 1, 4))
        query, key, value = parts[0], parts[1], parts[2]
        scores = self.product(query, key).astype(ms.float32) / self.head_width**0.5
        if mask is not None:
            scores = ops.where(mask, scores, self.unseen)
        weights = ops.softmax(scores, -1).astype(value.dtype)
        return ops.matmul(weights, value).transpose((0, 2, 1, 3)).reshape((batch, length, width // 3))


def causal_mask(opt):
    return ms.Tensor(np.tril(np.ones((opt.length, opt.length), bool)))


def make_blocks(opt, blocks):
    """Return the blocks as a list of cells; with recomputation backward computes their activations again."""
    blocks = nn.CellList(blocks)
    if opt.recompute == "blocks":
        for block in blocks:
            block.recompute()
    return blocks


class Decoder(nn.Cell):
    """A network of hidden states with its head: `construct` returns a micro-batch's share of the loss."""

    def __init__(self, opt, network):
        super().__init__()
        self.network = network
        self.head_logits = HeadLogits(opt)

    def construct(self, tokens, targets, labels):
        return self.loss_sum(tokens, targets) / labels

    def loss_sum(self, tokens, targets):
        return entropy_sum(self.head_logits(self.network(tokens), self.network.head()), targets)

    def normalizers(self, tokens, targets):
        """Return by what a step's losses are divided: its labels."""
        return (ms.Tensor(targets.size, ms.float32),)

    def evaluate(self, tokens, targets):
        return counts(self.loss_sum(tokens, targets), (targets >= 0).sum())


class HeadLogits(nn.Cell):
    """The product of hidden states and the head's matrix, a row for each token, in float32."""

    def __init__(self, opt):
        super().__init__()
        self.product = ops.MatMul(transpose_b=True)
        self.kind = compute_type(opt)

    def construct(self, hidden, head):
        hidden = hidden.reshape((-1, hidden.shape[-1]))
        return self.product(hidden.astype(self.kind), head.astype(self.kind)).astype(ms.float32)


def entropy_sum(logits, labels):
    """Return the sum of the cross entropies of all labels that are not -1."""
    labels = labels.reshape((-1,)).astype(ms.int32)
    return ops.cross_entropy(logits, labels, ignore_index=-1, reduction="sum")


def counts(*numbers):
    """Return the numbers of an evaluation as one tensor."""
    return ops.stack([number.astype(ms.float64) for number in numbers])


def compute_type(opt):
    return ms.float16 if opt.precision == "amp" else ms.float32


def build_model(opt, build):
    ms.set_seed(opt.seed)  # the same weights on every rank
    model = build(opt).set_train()
    if opt.precision == "amp":
        for _, cell in model.cells_and_names():
            if isinstance(cell, nn.Dense):
                cell.to_float(ms.float16)  # the weights stay in float32
    return model


def canonical_parameters(network):
    """Return the parameters by their canonical names."""
    words = {"gamma": "scale", "beta": "bias", "embedding_table": "weight"}
    named = {}
    for name, parameter in network.parameters_and_names():
        path, _, word = name.rpartition(".")
        named["{}.{}".format(path, words.get(word, word))] = parameter
    return named


# The step. MindSpore's own optimizers have no bias correction, or no parameters without trust ratio.


def make_optimizer(opt, parameters):
    if opt.recipe.optimizer == "lamb":
        return Lamb(opt.recipe, parameters)
    return (AdamW if opt.engine == "plain" else FusedAdamW)(opt.recipe, parameters)


class AdamW(nn.Cell):
    """AdamW (Loshchilov & Hutter 2019) after clipping to the global norm, in single operations."""

    title = "AdamW, written out"

    def __init__(self, recipe, parameters):
        super().__init__()
        self.clip, self.epsilon = recipe.clip, recipe.epsilon
        self.beta1, self.beta2 = recipe.beta1, recipe.beta2
        self.weights = parameters
        self.first, self.second = (parameters.clone(name, init="zeros") for name in ("first", "second"))
        self.steps = ms.Parameter(ms.Tensor(0.0, ms.float32), name="adam_step")
        self.decays = tuple(
            recipe.weight_decay if is_decayed(parameter.shape) else 0.0 for parameter in parameters
        )

    def construct(self, gradients, rate):
        squares = ()
        for gradient in gradients:
            squares += (ops.square(gradient).sum(),)
        factor = ops.minimum(clip_factor(ops.sqrt(ops.stack(squares).sum()), self.clip), 1.0)
        steps = ops.assign_add(self.steps, 1.0).astype(ms.float64)
        # In float64: a float32 power of 0.999 leaves four digits of the difference.
        mean_share, square_share = 1.0 - ops.pow(self.beta1, steps), 1.0 - ops.pow(self.beta2, steps)
        self.apply(gradients, factor, rate, mean_share.astype(ms.float32), square_share.astype(ms.float32))
        return rate

    def apply(self, gradients, factor, rate, mean_share, square_share):
        for index, gradient in enumerate(gradients):
            direction = self.direction(index, gradient * factor, mean_share, square_share)
            weight = self.weights[index]
            ops.assign(weight, weight * (1.0 - rate * self.decays[index]) - rate * direction)

    def direction(self, index, gradient, mean_share, square_share):
        """Move the moments, and return the direction of the step (Kingma & Ba 2015, bias corrected)."""
        first = self.first[index] * self.beta1 + gradient * (1.0 - self.beta1)
        second = self.second[index] * self.beta2 + ops.square(gradient) * (1.0 - self.beta2)
        ops.assign(self.first[index], first)
        ops.assign(self.second[index], second)
        return first / mean_share / (ops.sqrt(second / square_share) + self.epsilon)


class FusedAdamW(AdamW):
    """The same with MindSpore's kernel of Adam, which takes rate and epsilon with their bias corrections."""

    title = "ops.Adam"

    def __init__(self, recipe, parameters):
        super().__init__(recipe, parameters)
        self.adam = ops.Adam()

    def apply(self, gradients, factor, rate, mean_share, square_share):
        root = ops.sqrt(square_share)
        corrected, epsilon = rate * root / mean_share, self.epsilon * root
        for index, gradient in enumerate(gradients):
            weight = self.weights[index]
            if self.decays[index]:
                ops.assign(weight, weight * (1.0 - rate * self.decays[index]))
            moments = self.first[index], self.second[index]
            gradient = gradient * factor
            self.adam(weight, *moments, 0.0, 0.0, corrected, self.beta1, self.beta2, epsilon, gradient)


class Lamb(AdamW):
    """LAMB (You et al. 2020): each matrix moves in proportion to its own norm."""

    title = "LAMB, written out"

    def apply(self, gradients, factor, rate, mean_share, square_share):
        for index, gradient in enumerate(gradients):
            direction = self.direction(index, gradient * factor, mean_share, square_share)
            weight = self.weights[index]
            if self.decays[index]:
                direction = direction + self.decays[index] * weight
                norm, length = ops.sqrt(ops.square(weight).sum()), ops.sqrt(ops.square(direction).sum())
                both_positive = ops.logical_and(norm > 0, length > 0)
                direction = direction * ops.where(both_positive, norm / length, ops.ones_like(norm))
            ops.assign(weight, weight - rate * direction)


class Update(nn.Cell):
    """The ranks' mean of the gradients, without the loss scale; then the optimizer, unless it overflows."""

    def __init__(self, opt, parameters):
        super().__init__()
        self.optimizer = make_optimizer(opt, parameters)
        self.average = nn.Identity()
        if opt.world_size > 1:
            self.average = nn.DistributedGradReducer(parameters, mean=True, degree=opt.world_size)
        self.scaler = framework.loss_scaler(opt)

    def construct(self, gradients, rate):
        gradients = self.average(gradients)
        if self.scaler is None:
            self.optimizer(gradients, rate)
        else:
            gradients = self.scaler.unscale(gradients)
            finite = amp.all_finite(gradients)
            if finite:
                self.optimizer(gradients, rate)
            self.scaler.adjust(finite)
        return rate


class Gradients(nn.Cell):
    """Forward and backward of one micro-batch; the gradients are those of the scaled loss."""

    def __init__(self, model, parameters, scaler):
        super().__init__()
        self.model, self.scaler = model, scaler
        self.backward = ms.value_and_grad(self.forward, None, parameters, has_aux=True)

    def forward(self, *inputs):
        loss = self.model(*inputs)
        return loss if self.scaler is None else self.scaler.scale(loss), loss

    def construct(self, *inputs):
        (_, loss), gradients = self.backward(*inputs)
        return loss, gradients


class WholeStep(nn.Cell):
    """Forward, backward and update of one batch, compiled into one graph."""

    def __init__(self, gradients, update):
        super().__init__()
        self.gradients, self.update = gradients, update

    def construct(self, rate, *inputs):
        loss, gradients = self.gradients(*inputs)
        self.update(gradients, rate)
        return loss


class Accumulation(nn.Cell):
    """Forward and backward of one micro-batch, whose gradients are added to those before."""

    def __init__(self, gradients, sums):
        super().__init__()
        self.gradients, self.sums = gradients, sums

    def construct(self, *inputs):
        loss, gradients = self.gradients(*inputs)
        for total, gradient in zip(self.sums, gradients):
            ops.assign_add(total, gradient)
        return loss


class AccumulatedUpdate(nn.Cell):
    """The update with the gradients added up, which begin at zero again."""

    def __init__(self, update, sums):
        super().__init__()
        self.update, self.sums = update, sums

    def construct(self, rate):
        gradients = ()
        for total in self.sums:
            gradients += (total * 1.0,)  # a value: the parameter is written below
        self.update(gradients, rate)
        for total in self.sums:
            ops.assign(total, ops.zeros_like(total))
        return rate


class Step:
    """Forward, backward and update of one batch: one graph, or one for each micro-batch and the update's."""

    def __init__(self, opt, model):
        self.opt, self.model = opt, model
        parameters = ms.ParameterTuple(model.trainable_params())
        self.update = Update(opt, parameters)
        self.gradients = Gradients(model, parameters, self.update.scaler)
        if opt.accumulate == 1:
            self.whole = WholeStep(self.gradients, self.update)
        else:
            sums = parameters.clone("sum", init="zeros")
            self.micro_step = Accumulation(self.gradients, sums)
            self.finish = AccumulatedUpdate(self.update, sums)

    def __call__(self, batch, rate):
        rate = ms.Tensor(rate, ms.float32)  # a plain number would be compiled in
        normalizers = self.model.normalizers(*batch)
        if self.opt.accumulate == 1:
            return self.whole(rate, *batch, *normalizers)
        total = 0.0
        for begin in range(0, self.opt.step_sequences, self.opt.batch):
            micro_batch = (part[begin : begin + self.opt.batch] for part in batch)
            total = total + self.micro_step(*micro_batch, *normalizers)
        self.finish(rate)
        return total


class Evaluation(nn.Cell):
    """What a batch adds to the evaluation's counts, compiled into one graph."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def construct(self, *batch):
        return self.model.evaluate(*batch)


# Main


class Training(TransformerTraining, framework.Training):
    """The verbs of the loop; see `common/training.py`.

    `build(opt)` makes the family's model.
    """

    def __init__(self, opt, build):
        super().__init__(opt)
        self.model = build_model(opt, build)
        self.named = canonical_parameters(self.model.network)
        self.update, self.evaluation = Step(opt, self.model), Evaluation(self.model)
        self.optimizer, self.scaler = self.update.update.optimizer, self.update.update.scaler

    def place(self, *arrays):
        return tuple(map(ms.from_numpy, arrays))

    def feed(self, batches):
        # Copied: MindSpore would share the memory that the loader soon writes anew.
        return (tuple(ms.Tensor(part.copy()) for part in batch) for batch in batches)

    def step(self, *batch, rate):
        return self.update(batch, rate)

    def evaluate(self, *batch):
        self.evaluation.set_train(False)
        numbers = self.evaluation(*batch)
        self.evaluation.set_train(True)
        return lambda: numbers.asnumpy().tolist()

    def parameters(self):
        return sum(parameter.size for parameter in self.model.trainable_params())

    def load(self, values, momenta=None, rest=None):
        # Assigned: set_data is not seen inside a condition.
        for name, parameter in self.named.items():
            ops.assign(parameter, ms.Tensor(values[name]))
        for name, moment in self.moments():
            ops.assign(moment, ms.Tensor(momenta[name]) if momenta else ops.zeros_like(moment))
        rest = rest or {"adam_step": 0.0}
        for name, state in self.scalars():
            if name in rest:
                ops.assign(state, ms.Tensor(rest[name], state.dtype))

    def tensors(self):
        return framework.on_host(self.named.items())

    def momenta(self):
        return framework.on_host(self.moments())

    def moments(self):
        own = {parameter.name: name for name, parameter in self.named.items()}
        optimizer = self.optimizer
        for prefix, moments in (("first/", optimizer.first), ("second/", optimizer.second)):
            for weight, moment in zip(optimizer.weights, moments):
                yield prefix + own[weight.name], moment

    def rest(self):
        return framework.on_host_numbers(self.scalars())

    def scalars(self):
        return [("adam_step", self.optimizer.steps), *framework.scaler_state(self.scaler)]

    def features(self):
        return {
            "attention": "written out",
            "compiled": self.opt.engine == "stock",
            "optimizer": self.optimizer.title,
        }
