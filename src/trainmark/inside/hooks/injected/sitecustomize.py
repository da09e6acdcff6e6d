"""Start the hooks in a measured program, then whatever `sitecustomize` this one stands before."""

import importlib.machinery
import importlib.util
import os
import sys


def _next_sitecustomize():
    """Run the module that Python would have imported without us."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = [folder for folder in sys.path if os.path.abspath(folder) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


try:
    from trainmark.inside.hooks import attach

    attach.attach()
except Exception as error:  # noqa: BLE001  a program that cannot be watched still runs
    sys.stderr.write("trainmark: the hooks did not start: {!r}\n".format(error))
_next_sitecustomize()
