"""The program of a case: the copy of its code, what runs its Python, and what gives back its hooks.

A run resumed next week measures what it measured today. A command that sets PYTHONPATH itself, as
`env PYTHONPATH=. python train.py` does, would start Python without our `sitecustomize`: a program that is
found before the one of the same name adds it again, leaves PATH and becomes the program that was meant.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmark.suite.model import ContainerImage
from trainmark.workloads.registry import Family

# Handed on by name: the values differ from rank to rank, and the runtime has them in its own environment.
PASSED_VARIABLES = (
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT"),
    *("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TRAINMARK_EVENTS", "TRAINMARK_PEERS"),
    *("TRAINMARK_NODE", "TRAINMARK_JOB", "TRAINMARK_PROFILE", "TRAINMARK_PROFILE_STEPS"),
    *("PYTHONPATH", "PYTHONUNBUFFERED", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"),
)


@dataclass(frozen=True)
class RankInterpreter:
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
        within = CONTAINER_RUNTIMES[self.container.runtime](
            self.container, self.gpus, code, folder, variables
        )
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


CONTAINER_RUNTIMES: dict[str, Callable[[ContainerImage, bool, Path, Path, Sequence[str]], list[str]]] = {
    "docker": docker,
    "podman": podman,
    "apptainer": apptainer,
}


def _like_docker(
    container: ContainerImage, more: Sequence[str], code: Path, folder: Path, variables: Sequence[str]
) -> list[str]:
    mounts = [word for path in _mounted(code, folder) for word in ("--volume", f"{path}:{path}")]
    passed = [word for name in (*PASSED_VARIABLES, *variables) for word in ("--env", name)]
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


FOLDER = Path("trainmark/inside/hooks/injected/bin")
# What starts Python by a path of its own is found by name as well; its children have its PYTHONPATH.
WRAPPED_PROGRAMS = (
    "python",
    "python3",
    *(f"python3.{minor}" for minor in range(7, 20)),
    "torchrun",
    "accelerate",
    "deepspeed",
)
WRAPPER_SCRIPT = """\
#!/bin/sh
name=${0##*/} here=${0%/*}
injected=${here%/*}
code=${injected%/trainmark/inside/hooks/injected}
case ":$PYTHONPATH:" in
*":$injected:"*) ;;
*) [ -z "$TRAINMARK_EVENTS" ] || export PYTHONPATH="$injected:$code${PYTHONPATH:+:$PYTHONPATH}" ;;
esac
set -f
IFS=:
found= rest=
for folder in $PATH; do
  [ "$folder" = "$here" ] && continue
  rest=$rest:$folder
  [ -z "$found" ] && [ -f "${folder:-.}/$name" ] && [ -x "${folder:-.}/$name" ] && found=${folder:-.}/$name
done
export PATH="${rest#:}"
[ -n "$found" ] && exec "$found" "$@"
echo "$name: not found" >&2
exit 127
"""


def write_wrappers(code: Path) -> None:
    """Only for names that there are: who looks whether one exists is told the truth."""
    folder = code / FOLDER
    folder.mkdir()
    for name in filter(shutil.which, WRAPPED_PROGRAMS):
        script = folder / name
        script.write_text(WRAPPER_SCRIPT, encoding="utf-8")
        script.chmod(0o755)


PACKAGE = Path(__file__).resolve().parents[1]
# A measured program gets these on its path, and nothing else of ours.
COPIED_PARTS = ("__init__.py", "probe.py", "callbacks", "inside", "workloads")


def keep_code(folder: Path, families: Iterable[Family] = ()) -> None:
    """Copy the probe and the built-in workloads, and each of these families that lies elsewhere."""
    if folder.exists():
        return
    part = folder.with_name(".code.part")
    shutil.rmtree(part, ignore_errors=True)
    for name in COPIED_PARTS:
        origin, copy = PACKAGE / name, part / PACKAGE.name / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(origin, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, copy)
    for family in families:
        if not family.folder.is_relative_to(PACKAGE):
            _keep_family(family, part)
    write_wrappers(part)
    part.rename(folder)


def _keep_family(family: Family, root: Path) -> None:
    """As the same package, whose parents are empty: a family imports nothing else of its distribution."""
    place = root.joinpath(*family.package.split("."))
    if place.exists():
        return
    shutil.copytree(family.folder, place, ignore=shutil.ignore_patterns("__pycache__"))
    for parent in [place, *place.parents][: len(family.package.split("."))]:
        (parent / "__init__.py").touch()


def family_folder(code: Path, family: Family) -> Path:
    """Return where the copy of a family lies in a run's code."""
    return code.joinpath(*family.package.split("."))
