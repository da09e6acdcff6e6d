"""Training a transformer in plain JAX: its frame, the data, the step, main; a family adds its model."""

import functools

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from trainmark.workloads.common import optimizer
from trainmark.workloads.common.frameworks import jax as framework
from trainmark.workloads.common.frameworks.jax import RANKS
from trainmark.workloads.transformers.frameworks import jax_layers, jax_optimizers
from trainmark.workloads.transformers.frameworks.jax_optimizers import State
from trainmark.workloads.transformers.training import TransformerTraining

SCANNED_LAYERS = 32  # from here on XLA compiles one block and loops: else compiling takes minutes

# The model: what the families have in common


class Blocks:
    """The weights of all blocks; a call runs a family's `block(weights, x, *more)` with each in turn."""

    def __init__(self, opt, weights, specs):
        self.opt = opt
        prefix = "blocks.0."
        names = [name[len(prefix) :] for name in weights if name.startswith(prefix)]
        self.layers = [
            {name: weights["blocks.{}.{}".format(index, name)] for name in names}
            for index in range(opt.shape.layers)
        ]
        self.specs = {name: specs[prefix + name] for name in names}

    def __call__(self, block, x, *more):
        run = self.runner(block)
        if len(self.layers) < SCANNED_LAYERS:
            for index, weights in enumerate(self.layers):
                with jax.named_scope("blocks.{}".format(index)):
                    x = run(weights, x, *more)
            return x
        stacked = jax.tree.map(lambda *parts: jnp.stack(parts), *self.layers)
        with jax.named_scope("blocks"):
            return lax.scan(lambda x, weights: (run(weights, x, *more), None), x, stacked)[0]

    def runner(self, block):
        """Return how a block is run: its weights gathered, its activations stored or computed again."""

        def run(weights, x, *more):
            return block(whole_weights(self.opt, weights, self.specs), x, *more)

        if self.opt.recompute == "blocks":
            return jax.checkpoint(run)
        return jax_optimizers.gather_again(run) if self.opt.sharding == "fsdp" else run


def whole_weights(opt, weights, specs):
    """Return the weights as the model takes them: whole, and in the kind of number of the precision."""
    kind = number_kind(opt)
    return {name: jax_optimizers.whole(weight, specs[name], kind) for name, weight in weights.items()}


def number_kind(opt):
    return framework.HALF.get(opt.precision, jnp.float32)


class Decoder:
    """A network of hidden states, `hidden(opt, weights, blocks, tokens)`, with the head of that name.

    `deviation(name)` is that of the initial values of a matrix.
    """

    def __init__(self, opt, shapes, hidden, deviation, head):
        self.opt, self.shapes, self.deviation, self.head = opt, shapes, deviation, head
        self.hidden = functools.partial(hidden, opt)

    def cross_entropies(self, weights, blocks, tokens, targets):
        x = self.hidden(weights, blocks, tokens)
        with jax.named_scope("head"):
            return jax_layers.cross_entropies(jax_layers.product(x, weights[self.head]), targets)

    def loss(self, weights, blocks, batch, labels):
        return self.cross_entropies(weights, blocks, *batch).sum(-1).sum() / labels

    @staticmethod
    def normalizers(tokens, targets):
        """Return by what a step's losses are divided: its labels."""
        return (targets.size,)

    def evaluate(self, weights, blocks, tokens, targets):
        """Return of each sequence the sum of its losses, and how many they are."""
        losses = self.cross_entropies(weights, blocks, tokens, targets)
        return jnp.stack([losses.sum(-1), (targets >= 0).sum(-1).astype(jnp.float32)], -1)


# The data


def loaded(own, batches):
    """Copy a loader's batches to the device."""
    for batch in framework.prefetch(tuple(framework.put(own, part) for part in batch) for batch in batches):
        yield batch
        jax.block_until_ready(batch)  # the loader writes a batch anew when two more are asked for


# The step


class Step:
    """Forward, backward and update as each rank does it with its own batch, compiled as one program."""

    def __init__(self, opt, model, mesh):
        self.opt, self.model = opt, model
        self.specs = jax_optimizers.specs(opt, model.shapes)
        spread = State(self.specs, self.specs, self.specs, steps=P(), scale=P(), good_steps=P())
        shard_map = functools.partial(jax.shard_map, mesh=mesh, check_vma=False)  # the ranks' means are ours
        take = shard_map(self.take, in_specs=(spread, P(), P(RANKS)), out_specs=(spread, P(RANKS)))
        count = shard_map(self.count, in_specs=(self.specs, P(RANKS)), out_specs=P(RANKS))
        self.run, self.evaluate = jax.jit(take, donate_argnums=0), jax.jit(count)

    def take(self, state, rate, batch):
        gradients, loss = self.gradients(state, batch)
        means = {
            name: jax_optimizers.mean_over_ranks(gradient, self.specs[name], self.opt.world_size)
            for name, gradient in gradients.items()
        }
        with jax.named_scope("optimizer_step"):
            return jax_optimizers.update(self.opt, self.specs, state, means, rate), loss[None]

    def gradients(self, state, batch):
        """Return the gradients of the loss, times its scale, and the loss; summed over micro-batches."""
        normalizers = self.model.normalizers(*batch)
        # A slice is cast when it is gathered, block by block; what is whole here is cast once a step.
        sharded = self.opt.sharding == "fsdp"
        weights = state.weights if sharded else whole_weights(self.opt, state.weights, self.specs)

        def scaled_loss(weights, micro_batch):
            loss = self.model.loss(*self.split(weights), micro_batch, *normalizers)
            return loss * state.scale, loss

        differentiate = jax.grad(scaled_loss, has_aux=True)
        if self.opt.accumulate == 1:
            return differentiate(weights, batch)

        def add(sums, micro_batch):
            more = differentiate(weights, micro_batch)
            return jax.tree.map(lambda total, part: total + part.astype(jnp.float32), sums, more), None

        zeros = jax.tree.map(lambda weight: jnp.zeros(weight.shape, jnp.float32), weights)
        micro_batches = [part.reshape((self.opt.accumulate, -1, *part.shape[1:])) for part in batch]
        return lax.scan(add, (zeros, jnp.zeros(())), micro_batches)[0]

    def split(self, weights):
        """Return the weights outside of the blocks, ready for use, and the blocks."""
        outer = {name: weight for name, weight in weights.items() if not name.startswith("blocks.")}
        return whole_weights(self.opt, outer, self.specs), Blocks(self.opt, weights, self.specs)

    def count(self, weights, batch):
        return self.model.evaluate(*self.split(weights), *batch)


# Main


class Training(TransformerTraining, framework.Training):
    """The verbs of the loop; see `common/training.py`.

    `build(opt)` makes the family's model.
    """

    def __init__(self, opt, build):
        super().__init__(opt)
        self.model = build(opt)
        self.update = Step(opt, self.model, self.mesh)
        self.spread = {name: NamedSharding(self.mesh, spec) for name, spec in self.update.specs.items()}
        self.state = self.loaded_state(self.drawn(), None, {})

    def drawn(self):
        """Draw the initial weights, every rank its slices: norms are ones, biases zeros, matrices normal."""
        values = {}
        for index, (name, dimensions) in enumerate(self.model.shapes.items()):
            mean = 1.0 if name.endswith(".scale") else 0.0
            deviation = self.model.deviation(name) if len(dimensions) > 1 else 0.0
            run = make_draw(dimensions, self.spread[name], mean, deviation)
            values[name] = run(np.uint32(self.opt.seed), np.uint32(index))
        return values

    def feed(self, batches):
        return loaded(self.own, batches)

    def step(self, *batch, rate):
        self.state, loss = self.update.run(self.state, np.float32(rate), batch)
        return loss

    def evaluate(self, *batch):
        mine = self.update.evaluate(self.state.weights, batch).addressable_data(0)
        mine.copy_to_host_async()
        return lambda: np.asarray(mine, np.float64).sum(0)

    def parameters(self):
        return sum(weight.size for weight in self.state.weights.values())

    def load(self, values, momenta=None, rest=None):
        self.state = None  # two states need not fit the device
        placed = {name: self.placed(name, values[name]) for name in self.model.shapes}
        self.state = self.loaded_state(placed, momenta, rest or {})

    def loaded_state(self, weights, momenta, rest):
        """Return the state of these weights on the device, with moments and scalars from the host."""
        moments = (
            {
                name: self.placed(name, momenta[prefix + name])
                if momenta
                else make_draw(dimensions, self.spread[name], 0.0, 0.0)(np.uint32(0), np.uint32(0))
                for name, dimensions in self.model.shapes.items()
            }
            for prefix in ("first/", "second/")
        )
        scalars = (
            np.float32(rest.get("adam_step", 0.0)),
            np.float32(rest.get("scale", optimizer.initial_loss_scale(self.opt))),
            np.int32(rest.get("good_steps", 0)),
        )
        return State(weights, *moments, *(framework.put(self.all, scalar) for scalar in scalars))

    def placed(self, name, value):
        """Copy a whole tensor, the same on all ranks, to the device: the slice that this rank stores."""
        return jax.make_array_from_callback(value.shape, self.spread[name], lambda index: value[index])

    def tensors(self):
        return self.whole_on_host(self.state.weights)

    def momenta(self):
        moments = {"first/" + name: value for name, value in self.state.first.items()}
        moments.update(("second/" + name, value) for name, value in self.state.second.items())
        return self.whole_on_host(moments)

    def whole_on_host(self, named):
        """Return whole tensors on the host; all ranks call it together."""
        # One by one: together, sharded weights need not fit one device.
        return {name: framework.on_host({name: self.gather(value)})[name] for name, value in named.items()}

    def rest(self):
        rest = {"adam_step": float(self.state.steps)}
        if self.opt.precision == "amp":
            rest.update(scale=float(self.state.scale), good_steps=float(self.state.good_steps))
        return rest

    def features(self):
        return {
            "attention": jax_layers.attention_name(self.opt),
            "compiled": True,
            "optimizer": self.opt.recipe.optimizer + " written out",
            "weights": jnp.dtype(number_kind(self.opt)).name,
            "scanned": self.opt.shape.layers >= SCANNED_LAYERS,
        }


@functools.lru_cache(maxsize=None)  # many tensors are alike
def make_draw(dimensions, sharding, mean, deviation):
    """Return a compiled function that draws a tensor from the seed and the tensor's number."""

    def draw(seed, index):
        if not deviation:
            return jnp.full(dimensions, mean, jnp.float32)
        key = jax.random.fold_in(jax.random.key(seed), index)
        return deviation * jax.random.normal(key, dimensions, jnp.float32)

    return jax.jit(draw, out_shardings=sharding)
