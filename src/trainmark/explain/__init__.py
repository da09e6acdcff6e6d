"""Why a step takes as long as it does: a profile taken apart by kernel class and by cause of idle time."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainmark.api.shown import Shown


class _CallableModule(ModuleType):
    """`trainmark.explain` is this package, and the function of the API that has its name."""

    def __call__(self, *targets: Any, **options: Any) -> Shown:
        """Explain a run's case, a trace, or the difference of two of them: trainmark.explain.run.explain."""
        from trainmark.explain.run import explain

        return explain(*targets, **options)


sys.modules[__name__].__class__ = _CallableModule
