"""Wheels of a small package in many versions, for pip to find in a folder."""

from __future__ import annotations

import zipfile
from pathlib import Path

METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}"
WHEEL = "Wheel-Version: 1.0\nGenerator: by-hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def make_wheel(folder: Path, name: str, version: str, module: str, requires: tuple[str, ...] = ()) -> None:
    """Write NAME-VERSION-py3-none-any.whl with one module of this text."""
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    content = {
        f"{name}.py": module,
        f"{info}/METADATA": METADATA.format(name=name, version=version, requires=needs),
        f"{info}/WHEEL": WHEEL,
    }
    record = "".join(f"{path},,\n" for path in (*content, f"{info}/RECORD"))
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
        for path, text in {**content, f"{info}/RECORD": record}.items():
            file.writestr(path, text)
