"""What runs the ranks' Python: an interpreter of this machine, or one inside a container image."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmark.suite.model import ContainerImage

# Handed on by name: the values differ from rank to rank, and the runtime has them in its own environment.
PASSED = (
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT"),
    *("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TRAINMARK_EVENTS", "TRAINMARK_PEERS"),
    *("TRAINMARK_NODE", "TRAINMARK_JOB", "TRAINMARK_PROFILE", "TRAINMARK_PROFILE_STEPS"),
    *("PYTHONPATH", "PYTHONUNBUFFERED", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"),
)


@dataclass(frozen=True)
class Interpreter:
    """`python` is its path, or its name inside the image; `gpus` lets a container see them."""

    python: str
    container: ContainerImage | None = None
    gpus: bool = False

    def __str__(self) -> str:
        return f"{self.container.runtime} image {self.container.image}" if self.container else self.python

    def command(
        self, arguments: Sequence[str], code: Path, folder: Path, variables: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """`code` and `folder` keep their paths inside; `variables` are passed on beside the usual ones."""
        program = (self.python, *arguments)
        if self.container is None:
            return program
        within = RUNTIMES[self.container.runtime](self.container, self.gpus, code, folder, variables)
        return (*within, self.container.image, *program)


def docker(
    container: ContainerImage, gpus: bool, code: Path, folder: Path, variables: Sequence[str]
) -> list[str]:
    """On the host's network and shared memory, as the user who measures; gone when its program is."""
    visible = ["--gpus", "all"] if gpus else []
    return _like_docker(container, visible, code, folder, variables)


def podman(
    container: ContainerImage, gpus: bool, code: Path, folder: Path, variables: Sequence[str]
) -> list[str]:
    visible = ["--device", "nvidia.com/gpu=all", "--security-opt", "label=disable"] if gpus else []
    return _like_docker(container, [*visible, "--userns", "keep-id"], code, folder, variables)


def apptainer(
    container: ContainerImage, gpus: bool, code: Path, folder: Path, variables: Sequence[str]
) -> list[str]:
    """It shares network, user and environment with the host by itself."""
    binds = [word for path in _mounted(code, folder) for word in ("--bind", str(path))]
    return [
        "apptainer",
        "exec",
        *(["--nv"] if gpus else []),
        *binds,
        "--pwd",
        str(folder),
        *container.options,
    ]


RUNTIMES: dict[str, Callable[[ContainerImage, bool, Path, Path, Sequence[str]], list[str]]] = {
    "docker": docker,
    "podman": podman,
    "apptainer": apptainer,
}


def _like_docker(
    container: ContainerImage, more: Sequence[str], code: Path, folder: Path, variables: Sequence[str]
) -> list[str]:
    mounts = [word for path in _mounted(code, folder) for word in ("--volume", f"{path}:{path}")]
    passed = [word for name in (*PASSED, *variables) for word in ("--env", name)]
    return [
        *(container.runtime, "run", "--rm", "--init", "--interactive", "--network", "host", "--ipc", "host"),
        *("--user", f"{os.getuid()}:{os.getgid()}", "--env", "HOME=/tmp"),
        *more,
        *mounts,
        *("--workdir", str(folder)),
        *passed,
        *container.options,
    ]


def _mounted(code: Path, folder: Path) -> list[Path]:
    return [folder] if code.is_relative_to(folder) else [code, folder]
