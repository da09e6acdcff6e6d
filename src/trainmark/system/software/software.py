"""Python, the frameworks and the packages beside them, told from metadata without importing any."""

from __future__ import annotations

import fnmatch
import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from trainmark.system.reading import command_output

# The distributions that carry a framework, the one that is most often installed first.
FRAMEWORKS = {
    "pytorch": ("torch",),
    "tensorflow": ("tensorflow", "tensorflow-gpu", "tensorflow-cpu", "tf-nightly"),
    "jax": ("jax",),
    "mxnet": ("mxnet", "mxnet-cu*", "mxnet-mkl"),
    "paddle": ("paddlepaddle-gpu", "paddlepaddle"),
    "mindspore": ("mindspore", "mindspore-gpu", "mindspore-ascend"),
    "oneflow": ("oneflow",),
}

# What changes the speed of a training step or of its input without being a framework.
NOTABLE_PACKAGES = (
    "numpy", "torchvision", "triton", "jaxlib", "flax", "keras", "horovod", "apex", "deepspeed", "mpi4py",
    "transformer-engine", "nvidia-dali-cuda*", "nvidia-cublas*", "intel-extension-for-pytorch", "mkl",
    "pillow", "pillow-simd",
)  # fmt: skip

# Values are kept as they are, so only names that tune speed belong here. TensorFlow's are spelled out, for
# Terraform keeps its tokens and passwords under TF_ as well.
PERFORMANCE_VARIABLES = (
    "OMP_*", "KMP_*", "GOMP_*", "MKL_*", "OPENBLAS_NUM_THREADS", "MALLOC_*", "LD_PRELOAD",
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING", "CUDNN_*", "CUBLAS_*", "NVIDIA_TF32_OVERRIDE", "NCCL_*", "GLOO_*", "UCX_*",
    "HOROVOD_*", "XLA_*", "JAX_DEFAULT_MATMUL_PRECISION", "JAX_ENABLE_*", "TORCH_*", "PYTORCH_*",
    "TF_XLA_FLAGS", "TF_ENABLE_*", "TF_DISABLE_*", "TF_FORCE_*", "TF_GPU_*", "TF_CUDNN_*", "TF_NUM_*",
    "MXNET_*", "FLAGS_*", "ONEFLOW_*",
)  # fmt: skip

SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY")

OTHER_INTERPRETER_TIMEOUT_SECONDS = 30.0

# Runs in whatever Python the frameworks live in, back to 3.7, which has no importlib.metadata.
ASK_INTERPRETER = """
import json, platform
try:
    from importlib.metadata import distributions
    packages = [(d.metadata["Name"], d.version) for d in distributions()]
except ImportError:
    import pkg_resources
    packages = [(d.project_name, d.version) for d in pkg_resources.working_set]
print(json.dumps([platform.python_version(), platform.python_implementation(), packages]))
"""


@dataclass(frozen=True)
class Interpreter:
    """One Python and all that is installed in it, by normalised distribution name."""

    version: str
    implementation: str
    packages: Mapping[str, str]


@dataclass(frozen=True)
class Software:
    """What the workload runs on; every framework and notable package is named, absent ones with None."""

    python: str | None
    implementation: str | None
    frameworks: Mapping[str, str | None]
    packages: Mapping[str, str | None]
    variables: Mapping[str, str]


def read_interpreter(python: Path | None = None) -> Interpreter | None:
    """This interpreter, or the one at `python` by running it; None where that one does not answer."""
    if python is None:
        installed = [(each.metadata["Name"], each.version) for each in metadata.distributions()]
        return Interpreter(
            platform.python_version(), platform.python_implementation(), _normalised(installed)
        )
    printed = command_output(str(python), "-c", ASK_INTERPRETER, timeout=OTHER_INTERPRETER_TIMEOUT_SECONDS)
    try:
        version, implementation, installed = json.loads(printed or "")
    except ValueError:
        return None
    return Interpreter(version, implementation, _normalised(installed))


def read_software(interpreter: Interpreter | None, variables: Mapping[str, str] = os.environ) -> Software:
    """Pick what matters to speed out of an interpreter's packages and the environment variables."""
    installed = interpreter.packages if interpreter else {}
    return Software(
        python=interpreter.version if interpreter else None,
        implementation=interpreter.implementation if interpreter else None,
        frameworks={name: _first_version(installed, names) for name, names in FRAMEWORKS.items()},
        packages=_notable(installed),
        variables=performance_variables(variables),
    )


def matching(packages: Mapping[str, str], pattern: str) -> dict[str, str]:
    """The packages whose name fits a pattern such as `nvidia-cudnn-cu*`."""
    return {name: packages[name] for name in sorted(packages) if fnmatch.fnmatchcase(name, pattern)}


def performance_variables(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that tune speed; all others stay private."""
    return {
        name: variables[name]
        for name in sorted(variables)
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in PERFORMANCE_VARIABLES)
        and not SECRET.search(name)
    }


def _notable(installed: Mapping[str, str]) -> dict[str, str | None]:
    packages: dict[str, str | None] = {}
    for pattern in NOTABLE_PACKAGES:
        fitting = matching(installed, pattern)
        packages |= fitting if fitting else {pattern.rstrip("*"): None}
    return packages


def _first_version(installed: Mapping[str, str], patterns: tuple[str, ...]) -> str | None:
    return next((version for pattern in patterns for version in matching(installed, pattern).values()), None)


def _normalised(installed: Sequence[tuple[str | None, str]]) -> dict[str, str]:
    """PEP 503's one spelling for names; a broken distribution has none."""
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in reversed(installed) if name}
