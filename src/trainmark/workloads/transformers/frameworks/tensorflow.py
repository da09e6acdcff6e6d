"""Training a transformer in TensorFlow: parts of models, the data, the step, main; families add models.

Scopes name the layers in profiles; what is computed is the same without them.
"""

from trainmark.workloads.common.frameworks import tensorflow as framework
from trainmark.workloads.transformers.spec import clip_factor, is_decayed
from trainmark.workloads.transformers.training import TransformerTraining

tf = framework.tf  # which sets first what TensorFlow's import reads
# The model: parts that the families have in common


class Linear(tf.Module):
    def __init__(self, inputs, outputs, deviation):
        super().__init__()
        self.weight = normal((outputs, inputs), deviation)
        self.bias = tf.Variable(tf.zeros(outputs))

    def __call__(self, x):
        # In two dimensions: of three, the gradient would be a product for each sequence, then their sum.
        with tf.name_scope("linear"):
            rows = tf.reshape(x, (-1, x.shape[-1]))
            y = tf.matmul(rows, tf.cast(self.weight, x.dtype), transpose_b=True)
            y = tf.nn.bias_add(y, tf.cast(self.bias, x.dtype))
            return tf.reshape(y, x.shape[:-1] + y.shape[-1:])


class Embedding(tf.Module):
    def __init__(self, count, width, deviation):
        super().__init__()
        self.weight = normal((count, width), deviation)

    def __call__(self, ids):
        return tf.gather(self.weight, ids)


class LayerNorm(tf.Module):
    """In float32, whatever it is given, as Keras has it."""

    def __init__(self, width, epsilon):
        super().__init__()
        self.scale, self.bias = tf.Variable(tf.ones(width)), tf.Variable(tf.zeros(width))
        self.epsilon = epsilon

    def __call__(self, x):
        with tf.name_scope("layer_norm"):
            wide = tf.cast(x, tf.float32)
            mean, variance = tf.nn.moments(wide, -1, keepdims=True)
            normed = tf.nn.batch_normalization(wide, mean, variance, self.bias, self.scale, self.epsilon)
            return tf.cast(normed, x.dtype)


def normal(shape, deviation):
    return tf.Variable(tf.random.normal(shape, stddev=deviation))


def split_heads(x, heads):
    """From (sequences, length, width) to (sequences, heads, length, head width)."""
    sequences, length, width = x.shape
    return tf.transpose(tf.reshape(x, (sequences, length, heads, width // heads)), (0, 2, 1, 3))


def merge_heads(x):
    sequences, heads, length, width = x.shape
    return tf.reshape(tf.transpose(x, (0, 2, 1, 3)), (sequences, length, heads * width))


def attention(query, key, value, mask=None):
    """Return softmax(QKᵀ/√d)V of split heads; `mask` is 0 where a key is to be seen, else far below zero.

    TensorFlow has no fused attention of its own: what fuses this is XLA.
    """
    with tf.name_scope("attention"):
        scale = tf.cast(query.shape[-1] ** -0.5, query.dtype)
        scores = tf.cast(tf.matmul(query * scale, key, transpose_b=True), tf.float32)
        if mask is not None:
            scores += mask
        return tf.matmul(tf.cast(tf.nn.softmax(scores), value.dtype), value)


def additive_mask(allowed):
    return tf.where(allowed, 0.0, tf.float32.min)


def causal_mask(length):
    return additive_mask(tf.linalg.band_part(tf.ones((length, length), tf.bool), -1, 0))


def padding_mask(lengths, length):
    """Return the mask of keys that are padding, for all heads and queries; of no sequence are all."""
    return additive_mask(tf.range(length, dtype=lengths.dtype) < tf.maximum(lengths, 1)[:, None, None, None])


def block_runner(opt):
    """Return how a block is run: as it is, or so that backward computes its activations again."""
    if opt.recompute == "blocks":
        return lambda block, *inputs: tf.recompute_grad(block)(*inputs)

    def run(block, *inputs):
        with tf.name_scope("block"):
            return block(*inputs)

    return run


def tied_logits(hidden, head_weight):
    """Return what a head without bias gives, a row for each hidden state, in float32."""
    rows = tf.reshape(hidden, (-1, hidden.shape[-1]))
    return tf.cast(tf.matmul(rows, tf.cast(head_weight, rows.dtype), transpose_b=True), tf.float32)


def loss_sum(logits, labels):
    """Return the sum of the cross entropies of all labels that are not -1."""
    labels = tf.reshape(labels, (-1,))
    # A label below 0 is an error on a CPU.
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(labels, 0), logits)
    return tf.reduce_sum(tf.where(labels >= 0, losses, 0.0))


def compute_type(opt):
    """Return the type of the activations; the weights stay float32."""
    return framework.HALF.get(opt.precision, tf.float32)


class Decoder(tf.Module):
    """A network of hidden states with its head; `loss` returns a micro-batch's share of the loss."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def loss(self, tokens, targets, labels):
        return self.loss_sum(tokens, targets) / labels

    def loss_sum(self, tokens, targets):
        return loss_sum(tied_logits(self.network(tokens), self.network.head_weight), targets)

    @staticmethod
    def normalizers(tokens, targets):
        """Return by what a step's losses are divided: its labels."""
        return (float(targets.shape.num_elements()),)

    def evaluate(self, tokens, targets):
        loss, labels = self.loss_sum(tokens, targets), tf.math.count_nonzero(targets >= 0)
        return tf.stack([tf.cast(loss, tf.float64), tf.cast(labels, tf.float64)])


def named_variables(module, prefix=""):
    """Return every variable by its canonical name, which is that of the attributes on the way to it."""
    named = {}
    for name, part in vars(module).items():
        members = [(name, part)]
        if isinstance(part, list):
            members = [("{}.{}".format(name, index), member) for index, member in enumerate(part)]
        for path, member in members:
            if isinstance(member, tf.Variable):
                named[prefix + path] = member
            elif isinstance(member, tf.Module):
                named.update(named_variables(member, prefix + path + "."))
    return named


# The data


def loaded(opt, batches):
    """Copy a loader's batches to the device."""
    batches = (tuple(part.astype("int64") for part in batch) for batch in batches)
    if opt.device == "cuda":
        return framework.prefetch(batches)
    return (tuple(map(tf.identity, batch)) for batch in batches)


# The step


def make_optimizer(opt, named, scale):
    """Return the recipe's optimizer of variables by name; `scale` is the loss scale, None without one."""
    if opt.recipe.optimizer == "lamb":
        return Lamb(opt.recipe, named, scale)
    return (FusedAdamW if opt.engine == "stock" else AdamW)(opt.recipe, named, scale)


class AdamW:
    """AdamW (Loshchilov & Hutter 2019) in single operations; Keras' has another place for epsilon."""

    title = "AdamW, written out"

    def __init__(self, recipe, named, scale):
        self.recipe, self.named, self.scale = recipe, named, scale
        self.first, self.second = (
            {name: tf.Variable(tf.zeros_like(value), trainable=False) for name, value in named.items()}
            for _ in range(2)
        )
        self.steps = framework.own(0.0)

    def moments(self):
        """Return the variables of both moments by the names that a checkpoint has."""
        parts = ("first/", self.first), ("second/", self.second)
        return {prefix + name: value for prefix, moments in parts for name, value in moments.items()}

    def step(self, gradients, rate):
        """Clip the gradient to its global norm and update; an overflow leaves everything as it was."""
        scale = self.scale.value if self.scale is not None else 1.0
        norm = tf.linalg.global_norm(gradients) / scale
        factor = tf.minimum(clip_factor(norm, self.recipe.clip), 1.0) / scale
        gradients = [gradient * factor for gradient in gradients]
        beta1, beta2 = (tf.constant(beta) for beta in (self.recipe.beta1, self.recipe.beta2))
        if self.scale is None:
            steps = self.steps + 1.0
            powers = beta1**steps, beta2**steps
        else:
            # A branch would make the host wait for the answer: a step of rate 0 that keeps the moments whole.
            finite = tf.math.is_finite(norm)
            steps = self.steps + tf.cast(finite, tf.float32)
            powers = beta1 ** tf.maximum(steps, 1.0), beta2 ** tf.maximum(steps, 1.0)
            gradients = [tf.where(finite, gradient, 0.0) for gradient in gradients]
            rate = tf.where(finite, rate, 0.0)
            beta1, beta2 = (tf.where(finite, beta, 1.0) for beta in (beta1, beta2))
            self.scale.update(finite)
        self.steps.assign(steps)
        for name, gradient in zip(self.named, gradients):
            self.update(name, gradient, rate, beta1, beta2, powers)

    def update(self, name, gradient, rate, beta1, beta2, powers):
        variable, direction = self.named[name], self.direction(name, gradient, beta1, beta2, powers)
        variable.assign(variable * (1 - rate * self.decay(name)) - rate * direction)

    def direction(self, name, gradient, beta1, beta2, powers):
        """Move the moments, and return the direction of the step (Kingma & Ba 2015, bias corrected)."""
        first = beta1 * self.first[name] + (1 - beta1) * gradient
        second = beta2 * self.second[name] + (1 - beta2) * gradient * gradient
        self.first[name].assign(first)
        self.second[name].assign(second)
        return first / (1 - powers[0]) / (tf.sqrt(second / (1 - powers[1])) + self.recipe.epsilon)

    def decay(self, name):
        return self.recipe.weight_decay if is_decayed(self.named[name].shape) else 0.0


class FusedAdamW(AdamW):
    """The same by TensorFlow's operation for Adam, one kernel a tensor."""

    title = "AdamW, ResourceApplyAdam"

    def update(self, name, gradient, rate, beta1, beta2, powers):
        variable = self.named[name]
        if self.decay(name):
            variable.assign(variable * (1 - rate * self.decay(name)))
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self.first[name].handle,
            v=self.second[name].handle,
            beta1_power=powers[0],
            beta2_power=powers[1],
            lr=rate,
            beta1=beta1,
            beta2=beta2,
            # It adds epsilon before the bias correction of the second moment.
            epsilon=self.recipe.epsilon * tf.sqrt(1 - powers[1]),
            grad=gradient,
        )


class Lamb(AdamW):
    """LAMB (You et al. 2020): each matrix moves in proportion to its own norm."""

    title = "LAMB, written out"

    def update(self, name, gradient, rate, beta1, beta2, powers):
        variable, direction = self.named[name], self.direction(name, gradient, beta1, beta2, powers)
        if is_decayed(variable.shape):
            direction += self.recipe.weight_decay * variable
            weight_norm, length = tf.norm(variable), tf.norm(direction)
            ratio = tf.where(
                (weight_norm > 0) & (length > 0), tf.math.divide_no_nan(weight_norm, length), 1.0
            )
            direction *= ratio
        variable.assign_sub(rate * direction)


class Step:
    """Forward, backward and update of one batch, in micro-batches, on one rank."""

    def __init__(self, opt, model):
        self.opt, self.model = opt, model
        self.named = named_variables(model.network)
        self.scale = framework.LossScale(opt) if opt.precision == "amp" else None
        self.optimizer = make_optimizer(opt, self.named, self.scale)
        self.apply_gradients = self.optimizer.step
        self.evaluate = model.evaluate
        if opt.compile:  # both sides of the exchange between the ranks, which XLA leaves to TensorFlow
            self.differentiate = tf.function(self.differentiate, jit_compile=True)
            self.apply_gradients = tf.function(self.apply_gradients, jit_compile=True)
            self.evaluate = tf.function(self.evaluate, jit_compile=True)

    def __call__(self, rate, *batch):
        loss, gradients = self.differentiate(*batch)
        gradients = framework.mean_over_ranks(self.opt, gradients)
        with tf.name_scope("optimizer_step"):
            self.apply_gradients(gradients, rate)
        return loss

    def differentiate(self, *batch):
        """Return the loss of a batch and its gradients, summed over micro-batches."""
        normalizers, count = self.model.normalizers(*batch), self.opt.accumulate
        if count == 1:
            return self.differentiate_micro_batch(batch, normalizers)
        parts = [tf.reshape(part, (count, part.shape[0] // count, *part.shape[1:])) for part in batch]

        def add_micro_batch(index, loss, gradients):
            micro_batch = [part[index] for part in parts]
            more_loss, more = self.differentiate_micro_batch(micro_batch, normalizers)
            return index + 1, loss + more_loss, [total + new for total, new in zip(gradients, more)]

        # A loop of the graph: unrolled, it would be compiled anew for every micro-batch.
        zeros = 0, tf.zeros(()), [tf.zeros_like(variable) for variable in self.named.values()]
        _, loss, gradients = tf.while_loop(
            lambda index, *_: index < count, add_micro_batch, zeros, maximum_iterations=count
        )
        return loss, gradients

    def differentiate_micro_batch(self, batch, normalizers):
        with tf.GradientTape() as tape:
            loss = self.model.loss(*batch, *normalizers)
            scaled = loss if self.scale is None else loss * self.scale.value
        gradients = tape.gradient(scaled, list(self.named.values()))
        return loss, [tf.convert_to_tensor(gradient) for gradient in gradients]  # an embedding's is sparse


# Main


class Training(TransformerTraining, framework.Training):
    """The verbs of the loop; see `common/training.py`.

    `build(opt)` makes the family's model.
    """

    def __init__(self, opt, build):
        super().__init__(opt)
        eager = opt.engine == "plain"
        with self.strategy.scope():
            tf.random.set_seed(opt.seed)  # the same weights on every rank
            self.update = Step(opt, build(opt))
        self.run_step = self.replicated(self.update, eager)
        self.run_evaluation = self.replicated(self.update.evaluate, eager)

    def place(self, *arrays):
        # As int64: TensorFlow keeps int32 on the host.
        return tuple(tf.identity(array.astype("int64")) for array in arrays)

    def feed(self, batches):
        return loaded(self.opt, batches)

    def step(self, *batch, rate):
        return self.run_step(framework.scalar(rate), *batch)

    def evaluate(self, *batch):
        return self.run_evaluation(*batch).numpy

    def parameters(self):
        return sum(variable.shape.num_elements() for variable in self.update.model.trainable_variables)

    def load(self, values, momenta=None, rest=None):
        for name, variable in self.update.named.items():
            variable.assign(values[name])
        for name, moment in self.update.optimizer.moments().items():
            moment.assign(momenta[name] if momenta else tf.zeros_like(moment))
        self.update.optimizer.steps.assign((rest or {}).get("adam_step", 0.0))
        if self.update.scale is not None:
            self.update.scale.load(rest or {})

    def tensors(self):
        return on_host(self.update.named)

    def momenta(self):
        return on_host(self.update.optimizer.moments())

    def rest(self):
        rest = {} if self.update.scale is None else self.update.scale.rest()
        return dict(rest, adam_step=float(self.update.optimizer.steps.numpy()))

    def features(self):
        opt = self.opt
        return {
            "attention": "written out" + (", fused by XLA" if opt.compile else ""),
            "compiled": "XLA" if opt.compile else "tf.function" if opt.engine == "stock" else False,
            "optimizer": self.update.optimizer.title,
            "weights": "float32",
        }


def on_host(named):
    return {name: variable.numpy() for name, variable in named.items()}
