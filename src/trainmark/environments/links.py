"""Libraries that a wheel wants by a name that no package has: links to those of the system that stand in."""

from __future__ import annotations

from pathlib import Path

from trainmark.environments.locks import Lock

FOLDERS = ("usr/lib/*-linux-gnu", "lib/*-linux-gnu", "usr/lib64", "lib64", "usr/lib", "usr/local/lib")


def link_libraries(environment: Path, lock: Lock, root: Path = Path("/")) -> list[str]:
    """Makes the links of the lock's header beside the packages; returns the libraries that are not here."""
    missing = []
    (packages,) = environment.glob("lib/python3*/site-packages")
    for link, library in lock.links.items():
        target = next((path for folder in FOLDERS for path in root.glob(f"{folder}/{library}")), None)
        if target is None:
            missing.append(library)
            continue
        path = packages / link
        path.unlink(missing_ok=True)
        path.symlink_to(target)
    return missing
