"""Python, frameworks and packages from their metadata, and the libraries underneath: CUDA, cuDNN, NCCL, MPI.

None is imported or loaded. A machine may hold several libraries of one kind (the wheel's own cuDNN beside
the system's); all are listed, the ones that a framework from a wheel would load first.
"""

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

from trainmark.machine.reading import command_output, file_text, folder_entries, package_name

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
class InterpreterPackages:
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


def read_interpreter(python: Path | None = None) -> InterpreterPackages | None:
    """This interpreter, or the one at `python` by running it; None where that one does not answer."""
    if python is None:
        installed = [(each.metadata["Name"], each.version) for each in metadata.distributions()]
        return InterpreterPackages(
            platform.python_version(), platform.python_implementation(), _normalised(installed)
        )
    printed = command_output(str(python), "-c", ASK_INTERPRETER, timeout=OTHER_INTERPRETER_TIMEOUT_SECONDS)
    try:
        version, implementation, installed = json.loads(printed or "")
    except ValueError:
        return None
    return InterpreterPackages(version, implementation, _normalised(installed))


def read_software(
    interpreter: InterpreterPackages | None, variables: Mapping[str, str] = os.environ
) -> Software:
    """Pick what matters to speed out of an interpreter's packages and the environment variables."""
    installed = interpreter.packages if interpreter else {}
    return Software(
        python=interpreter.version if interpreter else None,
        implementation=interpreter.implementation if interpreter else None,
        frameworks={name: _first_version(installed, names) for name, names in FRAMEWORKS.items()},
        packages=_notable_packages(installed),
        variables=performance_variables(variables),
    )


def matching_packages(packages: Mapping[str, str], pattern: str) -> dict[str, str]:
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


def _notable_packages(installed: Mapping[str, str]) -> dict[str, str | None]:
    packages: dict[str, str | None] = {}
    for pattern in NOTABLE_PACKAGES:
        fitting = matching_packages(installed, pattern)
        packages |= fitting if fitting else {pattern.rstrip("*"): None}
    return packages


def _first_version(installed: Mapping[str, str], patterns: tuple[str, ...]) -> str | None:
    return next(
        (version for pattern in patterns for version in matching_packages(installed, pattern).values()), None
    )


def _normalised(installed: Sequence[tuple[str | None, str]]) -> dict[str, str]:
    """By one spelling of their names; a broken distribution has none."""
    return {package_name(name): version for name, version in reversed(installed) if name}


LIBRARY_FOLDERS = ("usr/lib/*-linux-gnu", "usr/lib64", "usr/lib", "usr/local/lib", "usr/local/cuda/lib64")
INCLUDE_FOLDERS = ("usr/include", "usr/include/*-linux-gnu", "usr/local/include", "usr/local/cuda/include")

# What each implementation prints in its banner.
MPI_MARKS = {"Open MPI": "Open MPI", "OpenRTE": "Open MPI", "Intel": "Intel MPI", "HYDRA": "MPICH"}


@dataclass(frozen=True)
class InstalledLibrary:
    """One installed copy: its version and where that was read."""

    version: str
    source: str


@dataclass(frozen=True)
class Libraries:
    """Every copy found of each library; None where there is none."""

    cuda_toolkit: tuple[InstalledLibrary, ...] | None
    cudnn: tuple[InstalledLibrary, ...] | None
    nccl: tuple[InstalledLibrary, ...] | None
    mpi: tuple[InstalledLibrary, ...] | None


def read_libraries(
    packages: Mapping[str, str], root: Path = Path("/"), variables: Mapping[str, str] = os.environ
) -> Libraries:
    """Look through installed packages, the linker's folders, the headers and the programs on the path."""
    folders = _library_folders(root, variables)
    cuda = [*_library_packages(packages, "nvidia-cuda-runtime*"), *_cuda_compiler(), *_cuda_folders(root)]
    cudnn = [
        *_library_packages(packages, "nvidia-cudnn-cu*"),
        *_shared_libraries(folders, "libcudnn"),
        *_library_headers(root, "cudnn_version.h", "CUDNN", "CUDNN_PATCHLEVEL"),
    ]
    nccl = [
        *_library_packages(packages, "nvidia-nccl-cu*"),
        *_shared_libraries(folders, "libnccl"),
        *_library_headers(root, "nccl.h", "NCCL", "NCCL_PATCH"),
    ]
    return Libraries(_distinct(cuda), _distinct(cudnn), _distinct(nccl), _distinct(_mpi_libraries()))


def _distinct(libraries: list[InstalledLibrary]) -> tuple[InstalledLibrary, ...] | None:
    """One entry a version: a library and its header are one installation."""
    first: dict[str, InstalledLibrary] = {}
    for library in libraries:
        first.setdefault(library.version, library)
    return tuple(first.values()) or None


def _library_packages(packages: Mapping[str, str], pattern: str) -> list[InstalledLibrary]:
    return [
        InstalledLibrary(version, f"package {name}")
        for name, version in matching_packages(packages, pattern).items()
    ]


def _cuda_compiler() -> list[InstalledLibrary]:
    match = re.search(r"release [\d.]+, V([\d.]+)", command_output("nvcc", "--version") or "")
    return [InstalledLibrary(match[1], "nvcc")] if match else []


def _cuda_folders(root: Path) -> list[InstalledLibrary]:
    folders = {
        folder.resolve(): None
        for folder in folder_entries(root / "usr/local")
        if re.fullmatch(r"cuda(-[\d.]+)?", folder.name)
    }
    libraries = []
    for folder in folders:
        version = _toolkit_version(folder)
        if version:
            libraries.append(InstalledLibrary(version, f"/usr/local/{folder.name}"))
    return libraries


def _toolkit_version(folder: Path) -> str | None:
    """version.json since CUDA 11.1, version.txt (`CUDA Version 10.2.89`) before."""
    try:
        version = json.loads(file_text(folder / "version.json") or "{}").get("cuda", {}).get("version")
    except ValueError:
        version = None
    if version:
        return str(version)
    match = re.search(r"CUDA Version ([\d.]+)", file_text(folder / "version.txt") or "")
    return match[1] if match else None


def _shared_libraries(folders: Sequence[Path], name: str) -> list[InstalledLibrary]:
    """The full version stands in the name of the file behind the links: `libcudnn.so.9.1.0`."""
    libraries = []
    for folder in folders:
        for path in sorted(folder.glob(f"{name}.so.*")):
            version = path.name.removeprefix(f"{name}.so.")
            if version.count(".") >= 2:
                libraries.append(InstalledLibrary(version, str(folder)))
    return libraries


def _library_folders(root: Path, variables: Mapping[str, str]) -> list[Path]:
    """Where the dynamic linker looks: LD_LIBRARY_PATH, its configuration, its usual folders."""
    configured = [
        line.strip().lstrip("/")
        for file in sorted(root.glob("etc/ld.so.conf.d/*.conf"))
        for line in (file_text(file) or "").splitlines()
        if line.strip().startswith("/")
    ]
    searched = [Path(entry) for entry in variables.get("LD_LIBRARY_PATH", "").split(":") if entry]
    for pattern in (*configured, *LIBRARY_FOLDERS):
        searched += sorted(root.glob(pattern))
    return list(dict.fromkeys(searched))


def _library_headers(root: Path, file_name: str, prefix: str, patch_name: str) -> list[InstalledLibrary]:
    libraries = []
    for pattern in INCLUDE_FOLDERS:
        for path in sorted(root.glob(f"{pattern}/{file_name}")):
            text = file_text(path) or ""
            numbers = [
                re.search(rf"#define {name}\s+(\d+)", text)
                for name in (f"{prefix}_MAJOR", f"{prefix}_MINOR", patch_name)
            ]
            if all(numbers):
                version = ".".join(number[1] for number in numbers if number)
                libraries.append(InstalledLibrary(version, f"/{path.relative_to(root)}"))
    return libraries


def _mpi_libraries() -> list[InstalledLibrary]:
    """`mpirun (Open MPI) 4.1.4`, `HYDRA build details: Version: 4.1` or `Intel(R) MPI … Version 2021.9`."""
    banner = command_output("mpirun", "--version") or ""
    version = re.search(r"(?:Open MPI\)|OpenRTE\)|Version:?)\s+(\d[\w.]*)", banner)
    kind = next((kind for mark, kind in MPI_MARKS.items() if mark in banner), "mpirun")
    return [InstalledLibrary(version[1], kind)] if version else []
