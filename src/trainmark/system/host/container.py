"""The container this process runs in, and its image where the inside can know it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainmark.system.reading import file_text

# Nothing inside a Docker container knows its image's name, so whoever starts one may say it here.
IMAGE_VARIABLES = ("TRAINMARK_IMAGE", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")


@dataclass(frozen=True)
class Container:
    """The kind of container (`docker`, `podman`, …) and the image it was started from."""

    kind: str
    image: str | None


def read_container(root: Path = Path("/"), variables: Mapping[str, str] = os.environ) -> Container | None:
    """The container around this process; None outside of one."""
    kind = _kind(root, variables)
    if kind is None:
        return None
    candidates = (variables.get(name) for name in IMAGE_VARIABLES)
    return Container(
        kind, next(filter(None, candidates), None) or _podman_image(root) or _ngc_image(variables)
    )


def _kind(root: Path, variables: Mapping[str, str]) -> str | None:
    if "APPTAINER_CONTAINER" in variables or "SINGULARITY_CONTAINER" in variables:
        return "apptainer"
    if "KUBERNETES_SERVICE_HOST" in variables:
        return "kubernetes"
    if (root / "run/.containerenv").exists():
        return "podman"
    if (root / ".dockerenv").exists():
        return "docker"
    groups = file_text(root / "proc/1/cgroup") or ""
    match = re.search(r"docker|containerd|kubepods|lxc|enroot", groups)
    return match[0] if match else None


def _podman_image(root: Path) -> str | None:
    match = re.search(r'^image="([^"]+)"', file_text(root / "run/.containerenv") or "", re.MULTILINE)
    return match[1] if match else None


def _ngc_image(variables: Mapping[str, str]) -> str | None:
    """NVIDIA's framework images name product and release in variables of their own."""
    product = variables.get("NVIDIA_PRODUCT_NAME")
    release = variables.get(f"NVIDIA_{product.upper()}_VERSION") if product else None
    return f"NGC {product} {release}" if release else None
