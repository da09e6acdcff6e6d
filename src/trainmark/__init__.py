"""Trainmark measures how fast deep-learning training really runs.

    import trainmark as tm

    run = tm.run("train.py", steps=200)
    print(run, run.results[0].throughput)
    tm.compare("before", "after").to_pandas()

This file is imported inside every measured program, down to Python 3.7, through `trainmark.probe`: it imports
nothing itself, and each name of the API when it is asked for.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainmark.api.comparing import compare as compare
    from trainmark.api.histories import history as history
    from trainmark.api.ledgers import ledger as ledger
    from trainmark.api.logs import read as read
    from trainmark.api.runs import open as open
    from trainmark.api.runs import run as run
    from trainmark.explain.run import explain as explain
    from trainmark.store.overview import load as load

_MODULES = {
    "compare": "trainmark.api.comparing",
    "explain": "trainmark.explain.run",
    "history": "trainmark.api.histories",
    "ledger": "trainmark.api.ledgers",
    "load": "trainmark.store.overview",
    "open": "trainmark.api.runs",
    "read": "trainmark.api.logs",
    "run": "trainmark.api.runs",
}
__all__ = [*_MODULES]  # noqa: PLE0604


def __getattr__(name):  # type: ignore[no-untyped-def]
    if name not in _MODULES:
        raise AttributeError("module 'trainmark' has no attribute {!r}".format(name))
    from importlib import import_module

    return getattr(import_module(_MODULES[name]), name)


def __dir__():  # type: ignore[no-untyped-def]
    return ["__version__", *_MODULES]
