"""The libraries underneath a framework: CUDA, cuDNN, NCCL and MPI, found without loading any of them.

A machine may hold several of one kind (the wheel's own cuDNN beside the system's); all are listed, the ones
that a framework from a wheel would load first.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmark.system.reading import command_output, file_text, folder_entries
from trainmark.system.software.software import matching

LIBRARY_FOLDERS = ("usr/lib/*-linux-gnu", "usr/lib64", "usr/lib", "usr/local/lib", "usr/local/cuda/lib64")
INCLUDE_FOLDERS = ("usr/include", "usr/include/*-linux-gnu", "usr/local/include", "usr/local/cuda/include")

# What each implementation prints in its banner.
MPI_MARKS = {"Open MPI": "Open MPI", "OpenRTE": "Open MPI", "Intel": "Intel MPI", "HYDRA": "MPICH"}


@dataclass(frozen=True)
class Library:
    """One installed copy: its version and where that was read."""

    version: str
    source: str


@dataclass(frozen=True)
class Libraries:
    """Every copy found of each library; None where there is none."""

    cuda_toolkit: tuple[Library, ...] | None
    cudnn: tuple[Library, ...] | None
    nccl: tuple[Library, ...] | None
    mpi: tuple[Library, ...] | None


def read_libraries(
    packages: Mapping[str, str], root: Path = Path("/"), variables: Mapping[str, str] = os.environ
) -> Libraries:
    """Look through installed packages, the linker's folders, the headers and the programs on the path."""
    folders = _library_folders(root, variables)
    cuda = [*_packaged(packages, "nvidia-cuda-runtime*"), *_cuda_compiler(), *_cuda_folders(root)]
    cudnn = [
        *_packaged(packages, "nvidia-cudnn-cu*"),
        *_shared(folders, "libcudnn"),
        *_header(root, "cudnn_version.h", "CUDNN", "CUDNN_PATCHLEVEL"),
    ]
    nccl = [
        *_packaged(packages, "nvidia-nccl-cu*"),
        *_shared(folders, "libnccl"),
        *_header(root, "nccl.h", "NCCL", "NCCL_PATCH"),
    ]
    return Libraries(_distinct(cuda), _distinct(cudnn), _distinct(nccl), _distinct(_mpi()))


def _distinct(libraries: list[Library]) -> tuple[Library, ...] | None:
    """One entry a version: a library and its header are one installation."""
    first: dict[str, Library] = {}
    for library in libraries:
        first.setdefault(library.version, library)
    return tuple(first.values()) or None


def _packaged(packages: Mapping[str, str], pattern: str) -> list[Library]:
    return [Library(version, f"package {name}") for name, version in matching(packages, pattern).items()]


def _cuda_compiler() -> list[Library]:
    match = re.search(r"release [\d.]+, V([\d.]+)", command_output("nvcc", "--version") or "")
    return [Library(match[1], "nvcc")] if match else []


def _cuda_folders(root: Path) -> list[Library]:
    folders = {
        folder.resolve(): None
        for folder in folder_entries(root / "usr/local")
        if re.fullmatch(r"cuda(-[\d.]+)?", folder.name)
    }
    libraries = []
    for folder in folders:
        version = _toolkit_version(folder)
        if version:
            libraries.append(Library(version, f"/usr/local/{folder.name}"))
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


def _shared(folders: Sequence[Path], name: str) -> list[Library]:
    """The full version stands in the name of the file behind the links: `libcudnn.so.9.1.0`."""
    libraries = []
    for folder in folders:
        for path in sorted(folder.glob(f"{name}.so.*")):
            version = path.name.removeprefix(f"{name}.so.")
            if version.count(".") >= 2:
                libraries.append(Library(version, str(folder)))
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


def _header(root: Path, file_name: str, prefix: str, patch_name: str) -> list[Library]:
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
                libraries.append(Library(version, f"/{path.relative_to(root)}"))
    return libraries


def _mpi() -> list[Library]:
    """`mpirun (Open MPI) 4.1.4`, `HYDRA build details: Version: 4.1` or `Intel(R) MPI … Version 2021.9`."""
    banner = command_output("mpirun", "--version") or ""
    version = re.search(r"(?:Open MPI\)|OpenRTE\)|Version:?)\s+(\d[\w.]*)", banner)
    kind = next((kind for mark, kind in MPI_MARKS.items() if mark in banner), "mpirun")
    return [Library(version[1], kind)] if version else []
