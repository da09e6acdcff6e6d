"""The formats of a set: one file each. A file added here is a format that every command knows."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from trainmark.base.errors import UserError, nearest
from trainmark.data.records import ImageFormat


@functools.cache
def names() -> tuple[str, ...]:
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


@functools.cache
def named(name: str) -> ImageFormat:
    if name not in names():
        raise UserError(f"there is no format '{name}'{nearest(name, names())}")
    form: ImageFormat = importlib.import_module(f"{__name__}.{name}").FORMAT
    return form
