"""Call functions once a module has been imported, by whoever imports it."""

import importlib.abc
import importlib.machinery
import sys

_WAITING = {}


def when_imported(name, call):
    """Call `call(module)` after the module of this name is executed; at once where it already is."""
    if name in sys.modules:
        call(sys.modules[name])
        return
    if not _WAITING:
        sys.meta_path.insert(0, _Finder())
    _WAITING.setdefault(name, []).append(call)


class _Finder(importlib.abc.MetaPathFinder):
    """Leaves the search to the finders behind it, and wraps the loader of what is waited for."""

    def find_spec(self, name, path=None, target=None):
        if name not in _WAITING:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    _call_after(spec.loader, _WAITING.pop(name))
                return spec
        return None


def _call_after(loader, calls):
    """Shadow the loader's `exec_module`; its type stays, since resources and inspection ask for it."""
    execute = loader.exec_module

    def execute_then_call(module):
        execute(module)
        for call in calls:
            try:
                call(module)
            except Exception as error:  # noqa: BLE001  an unknown version is not watched, and runs
                sys.stderr.write("trainmark: {} is not watched: {!r}\n".format(module.__name__, error))

    loader.exec_module = execute_then_call
