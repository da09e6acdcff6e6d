"""The door to NVIDIA's management library, which is absent on most machines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class NoDriverError(Exception):
    """There is no NVIDIA driver to ask; the message says which part is missing."""


@contextmanager
def nvml_session(module: Any = None) -> Iterator[Any]:
    """NVML, initialised; `module` stands in for pynvml where a test has its own."""
    nvml = module or _pynvml()
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        raise NoDriverError(f"no NVIDIA driver found ({error})") from error
    try:
        yield nvml
    finally:
        asked(nvml, "nvmlShutdown")


def _pynvml() -> Any:
    try:
        import pynvml
    except ImportError as error:
        raise NoDriverError("pynvml is not installed: pip install nvidia-ml-py") from error
    return pynvml


def asked(nvml: Any, function: str, *arguments: Any) -> Any:
    """The answer, or None: cards and drivers refuse what they do not support."""
    try:
        return getattr(nvml, function)(*arguments)
    except nvml.NVMLError:
        return None


def device_handles(nvml: Any) -> dict[int, Any]:
    """A handle for each GPU that answers, by NVML's index (the order on the PCI bus)."""
    handles = {
        index: asked(nvml, "nvmlDeviceGetHandleByIndex", index)
        for index in range(asked(nvml, "nvmlDeviceGetCount") or 0)
    }
    return {index: handle for index, handle in handles.items() if handle is not None}
