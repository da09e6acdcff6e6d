"""The command line of all transformer programs."""

from trainmark.workloads.common import options
from trainmark.workloads.common.refusal import Refusal

ENGINES = ["stock", "plain"]
SHARDING = ["none", "fsdp"]
RECOMPUTE = ["none", "blocks"]


def parser(program, title, recipes, sizes, metrics, length, datasets=("tokens",)):
    """Return the parser; of the sizes the first is the default."""
    made = options.parser(program, title, "sequences", recipes, datasets=list(datasets), engines=ENGINES)
    add = made.add_argument
    add("--size", choices=list(sizes), default=next(iter(sizes)))
    add("--length", type=int, default=length, help="tokens in a sequence")
    add("--accumulate", type=int, default=1, metavar="N", help="micro-batches a step")
    add("--sharding", choices=SHARDING, default="none", help="of weights and optimizer over the ranks")
    add("--recompute", choices=RECOMPUTE, default="none", help="activations that backward computes again")
    add("--on-bad", choices=["stop", "skip"], default="stop", help="taken from suites; token files are whole")
    add("--until", type=finish_line(metrics), action="append", metavar="loss=3.28", help="stop when reached")
    return made


def finish_line(metrics):
    """Return a parser of `loss=3.28` into ("loss", 3.28)."""

    def parse(text):
        name, _, value = text.partition("=")
        if name not in metrics or not 0 < float(value) < float("inf"):
            raise ValueError(text)
        return name, float(value)

    return parse


def settle(opt, world_size, recipes, shape, datasets):
    """Set what follows from the number of ranks, from the size and from the kind of data."""
    options.settle(opt, world_size, recipes)
    opt.shape = shape
    opt.stored, opt.dataset_kind = opt.data in datasets, datasets[0]
    opt.step_sequences = opt.batch * opt.accumulate
    if opt.recipe is not None:
        tokens = opt.recipe.epoch_tokens or opt.recipe.rate_batch * opt.length
        # In sequences, as the global batch is; at least one step.
        opt.epoch_samples = max(opt.global_batch, tokens // opt.length)
    return opt


def check(opt):
    """Refuse what can be had in no framework."""
    options.check(opt)
    for name in ("batch", "accumulate", "length"):
        if getattr(opt, name) < 1:
            raise Refusal("--{} takes a whole number from 1 up, not {}.".format(name, getattr(opt, name)))
    if opt.length > opt.shape.positions:
        raise Refusal(
            "{} has {:,} positions, too few for sequences of {:,} tokens; use a shorter length.".format(
                opt.size, opt.shape.positions, opt.length
            )
        )
    if opt.stored:
        from trainmark.workloads.tokens import feed

        feed.check(opt)
