"""The command line that the programs of all families have in common."""

import argparse
import os
import sys

from trainmark.workloads.common.recipe import RecipeError
from trainmark.workloads.common.refusal import Refusal


def parser(program, title, unit, recipes, datasets=(), loaders=("host",), layouts=(), engines=("stock",)):
    """Return a parser to which a family adds its own options; of every choice the first is the default."""
    made = argparse.ArgumentParser(prog=program, description="Train {}.".format(title))
    add = made.add_argument
    add("--batch", type=int, default=32, help="{} per device and step".format(unit))
    add("--precision", choices=["fp32", "tf32", "amp", "bf16"], default="fp32")
    add("--loss-scale", type=loss_scale, default="dynamic", help="'dynamic' or a number; for --precision amp")
    if layouts:
        add("--layout", choices=layouts, default=layouts[0])
    add("--engine", choices=engines, default=engines[0], help="whose kernels train")
    modes = ["default", "reduce-overhead"]
    add("--compile", nargs="?", const=modes[0], choices=modes, help="the framework's compiler")
    add("--cuda-graph", action="store_true", help="capture the whole step and replay it")
    add("--data", choices=["synthetic", "synthetic-host", *datasets], default="synthetic")
    add("--dataset", metavar="FOLDER", help="where the {} are, unless the data are synthetic".format(unit))
    add("--loader", choices=loaders, default=loaders[0])
    add("--workers", type=int, default=0, help="threads of the loader; 0: as many as this rank has cores")
    add("--device", choices=["cuda", "cpu"], default="cpu")
    add("--steps", type=int, default=120, help="steps to run, warm-up included")
    known = "one of {}, or a path".format(", ".join(recipes.names()))
    add("--recipe", dest="recipe_name", default=recipes.default, help=known)
    add("--epochs", type=int, help="train at most this many epochs, evaluating after each")
    add("--checkpoints", metavar="FOLDER", help="keep what a killed training can go on from")
    add("--checkpoint-steps", type=int, default=0, metavar="N", help="also within an epoch, every N steps")
    add("--checkpoints-kept", type=int, default=2, metavar="N")
    add("--memory-cap", type=int, metavar="BYTES", help="use no more memory than this")
    add("--seed", type=int, default=0)
    add("--conform", metavar="FILE", help="train from the weights of all frameworks, write what came of it")
    add("--check", action="store_true", help="read command lines on standard input, say which can run here")
    return made


def parse(made, arguments, recipes):
    """Return the options, settled for the ranks that the environment tells."""
    options = made.parse_args(arguments)
    options.until = dict(options.until or ())
    options.rank = int(os.environ.get("RANK", "0"))
    options.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    return settle(options, int(os.environ.get("WORLD_SIZE", "1")), recipes)


def settle(options, world_size, recipes):
    """Set what follows from the number of ranks: the global batch, and the recipe at it."""
    options.world_size = world_size
    options.global_batch = options.batch * getattr(options, "accumulate", 1) * world_size
    options.step_samples = options.batch  # of one rank; a family may count smaller ones
    options.by_epochs = bool(options.epochs or options.until)
    options.recipe, options.unfit = None, None
    try:
        options.full_recipe = recipes.find(options.recipe_name, options.global_batch)
        shortened = options.epochs and options.full_recipe.over(options.epochs)
        options.recipe = shortened or options.full_recipe
    except RecipeError as error:
        options.unfit = str(error)
    return options


def check(options):
    """Refuse a recipe that is none, or none at this batch."""
    if options.unfit:
        raise Refusal(options.unfit)


def loss_scale(text):
    """`dynamic`, or the static scale as a number above zero."""
    if text == "dynamic":
        return text
    scale = float(text)
    if not 0 < scale < float("inf"):
        raise ValueError(text)
    return scale


def finish_line_of(metrics, most=sys.float_info.max):
    """Return a parser of `loss=3.28` into ("loss", 3.28)."""

    def finish_line(text):
        name, _, value = text.partition("=")
        if name not in metrics or not 0 < float(value) <= most:
            raise ValueError(text)
        return name, float(value)

    return finish_line


def element_bytes(options):
    """Return the bytes of a number of the activations."""
    return 2 if options.precision in ("amp", "bf16") else 4
