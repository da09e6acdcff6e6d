"""What each framework cannot do is a row of `refusals.json`; see `common/refusal.py` for its form."""

import os

from trainmark.workloads.common import refusal

TABLE = refusal.read_table(os.path.join(os.path.dirname(os.path.abspath(__file__)), "refusals.json"))


def check(framework, opt, capability=None, **machine):
    """Refuse what cannot be had here; `capability` is that of the GPU, None where none is used.

    Rows also name options, fields of the recipe, and what else `machine` has.
    """
    asked = dict(vars(opt.recipe), **vars(opt))
    title = refusal.TITLES[framework]
    asked.update(machine, framework=framework, title=title, several_ranks=opt.world_size > 1)
    refusal.check(TABLE, capability=capability, **asked)
