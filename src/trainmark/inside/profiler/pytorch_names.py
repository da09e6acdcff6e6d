"""Names of a program's models: the variables and attributes that hold them."""

import collections
import sys

MOST_ALIKE = 6  # models of one type; of more, a program calls its layers itself
MOST_NODES = 200_000  # of a profile that are looked at
MOST_NAMES = 64
FRAME = "nn.Module: "


def model_names(profile, frame):
    """Return the name of each outermost module of a profile that has one: {"Sequential_0": "netG"}.

    `frame` is one of the program's, or what the program called; the callers of it are looked at too.
    """
    modules = dict(_outermost(profile))
    known = variable_names(modules.values(), frame)
    return {label: known[key] for label, key in modules.items() if key in known}


def variable_names(wanted, frame):
    """Return the names of the variables and attributes that hold objects, by their ids."""
    wanted, known = set(wanted), {}
    while frame is not None:
        for variables in (frame.f_locals, frame.f_globals):
            _look(variables, wanted, known)
        frame = frame.f_back
    _look(vars(sys.modules.get("__main__", sys)), wanted, known)
    return known


def prefixes(models, frame):
    """Return what the paths of each model's modules begin with, by its id; a sole model has none.

    Models of one type have the names of `variable_names`, or numbers; others that have parts have their type.
    """
    kinds = collections.Counter(type(model).__name__ for model in models)
    several = sum(bool(model._modules) for model in models) > 1
    alike = [id(model) for model in models if 1 < kinds[type(model).__name__] <= MOST_ALIKE]
    known = variable_names(alike, frame) if alike else {}
    numbers, told = collections.Counter(), {}
    for model in models:
        kind = type(model).__name__
        numbers[kind] += 1
        if id(model) in alike:
            told[id(model)] = known.get(id(model)) or "{} #{}".format(kind, numbers[kind])
        elif several and model._modules:
            told[id(model)] = kind
    return told


def _outermost(profile):
    """Yield the label and id of modules that no other module called, as the profiler saw them."""
    nodes = list(profile.profiler.kineto_results.experimental_event_tree())
    for _ in range(MOST_NODES):
        if not nodes:
            return
        node = nodes.pop()
        module = getattr(getattr(node, "extra_fields", None), "module", None)
        if module is None:
            nodes += node.children
        else:
            yield node.name[len(FRAME) :], module.self_ptr


def _look(variables, wanted, known):
    """Add the names of what is wanted among variables, and among the attributes of what they hold."""
    for name, value in list(variables.items()):
        if id(value) in wanted:
            known.setdefault(id(value), name)
    for name, value in list(variables.items()):
        attributes = getattr(value, "__dict__", None)
        if type(attributes) is dict and not name.startswith("__") and type(value).__module__ != "builtins":
            for inner, part in list(attributes.items())[:MOST_NAMES]:
                if id(part) in wanted:
                    known.setdefault(id(part), "{}.{}".format(name, inner))
