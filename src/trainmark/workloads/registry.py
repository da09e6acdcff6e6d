"""Find workload families: built in, installed by other packages, or in a folder given by its path."""

from __future__ import annotations

import contextlib
import importlib
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from trainmark.base.errors import UserError, nearest
from trainmark.metric import Metric
from trainmark.workloads.declaration import Axis, Workload

FOLDER = Path(__file__).resolve().parent
DEFAULT = "resnet50"
DECLARATION = "workload"  # the module of a family that holds its WORKLOAD
SHARED = "shared"  # the module of what its programs share, where one file is enough
ENTRY_POINTS = "trainmark.workloads"


@dataclass(frozen=True)
class Family:
    """A declaration and where it lies: `find` takes its `key`, programs are imported from its `package`."""

    workload: Workload
    key: str
    folder: Path
    package: str

    @property
    def frameworks(self) -> tuple[str, ...]:
        """One for each program in the folder; what they share may lie beside them as `shared.py`."""
        names = (path.stem for path in self.folder.glob("*.py"))
        return tuple(sorted(name for name in names if name not in ("__init__", DECLARATION, SHARED)))

    def module(self, framework: str) -> str:
        return f"{self.package}.{framework}"


class _FamilyPackage(ModuleType):
    """The package that a folder is; its parent, with all else that lies there, stays off the path."""

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name)
        self.__path__ = [str(folder)]


def is_path(name: str) -> bool:
    return "/" in name or name.startswith(".")


@cache
def find(name: str) -> Family:
    """Return the family of that name, or the one in the folder at that path."""
    if is_path(name):
        try:
            return _in_folder(Path(name).expanduser().resolve())
        except (OSError, RuntimeError) as error:  # too long a name, a loop of links, no such user
            raise UserError(f"{name} cannot name a folder: {error}.") from error
    if name in built_in():
        return built_in()[name]
    if name in (known := families()):
        return known[name]
    if name in (installed := _installed()):
        return _of_package(installed[name])  # which says why it cannot be had
    raise UserError(f"there is no workload '{name}'{nearest(name, known)}")


@cache
def built_in() -> dict[str, Family]:
    """Return the families of this package."""
    packages = [f"{__package__}.{path.parent.name}" for path in sorted(FOLDER.glob(f"*/{DECLARATION}.py"))]
    return {family.workload.name: family for family in map(_of_package, packages)}


@cache
def families() -> dict[str, Family]:
    """Return all that can be named without a path; one that is installed and broken harms no other."""
    known = dict(built_in())
    for package in _installed().values():
        with contextlib.suppress(UserError):
            family = _of_package(package)
            known.setdefault(family.workload.name, family)
    return known


def _installed() -> dict[str, str]:
    """The packages that other distributions name, by the workload's name."""
    from importlib.metadata import entry_points  # takes longer than all else that is imported here

    return {entry.name: entry.value for entry in entry_points(group=ENTRY_POINTS)}


def axes() -> dict[str, Axis]:
    """Return every axis that some family declares, by name; a user's own program may be given any of them."""
    return {axis.name: axis for family in families().values() for axis in family.workload.axes}


def metrics() -> dict[str, Metric]:
    """Return every metric that some family declares, by name."""
    return {metric.name: metric for family in families().values() for metric in family.workload.metrics}


def name_elsewhere(workload: str, place: str) -> str:
    """Return the name that MLPerf, AI-Rank or DLPerf has for a workload; its own where they have none."""
    family = families().get(workload)
    return family.workload.names_elsewhere.get(place, workload) if family else workload


def short_unit(unit: str) -> str:
    """Return the abbreviation of a unit, where a family declares one."""
    workloads = (family.workload for family in families().values())
    return next((each.short_unit for each in workloads if each.unit == unit and each.short_unit), unit)


def _of_package(package: str) -> Family:
    try:
        declared = importlib.import_module(f"{package}.{DECLARATION}")
    # It is somebody's program, and may fail in every way.
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UserError(f"the workload in the package {package} cannot be imported: {reason}.") from error
    folder = Path(str(declared.__file__)).parent
    workload = _declared(declared, folder)
    return Family(workload, workload.name, folder, package)


def _in_folder(folder: Path) -> Family:
    """Import the declaration as a module of the package that the folder is."""
    file = folder / f"{DECLARATION}.py"
    if not file.is_file():
        raise UserError(f"{folder} is no workload: it has no {DECLARATION}.py.")
    package = folder.name
    if not package.isidentifier() or package in sys.stdlib_module_names:
        raise UserError(f"{folder}: a workload's folder is a Python package; give it another name.")
    if package in sys.modules and not isinstance(sys.modules[package], _FamilyPackage):
        raise UserError(f"{folder}: another package is called '{package}'; give the folder another name.")
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{package}.")]:
        del sys.modules[name]  # of another folder of that name, or of this one as it was
    sys.modules[package] = _FamilyPackage(package, folder)
    try:
        declared = importlib.import_module(f"{package}.{DECLARATION}")
    # It is somebody's program, and may fail in every way.
    except Exception as error:
        raise UserError(f"{file} cannot be imported: {type(error).__name__}: {error}.") from error
    return Family(_declared(declared, folder), str(folder), folder, package)


def _declared(module: object, folder: Path) -> Workload:
    workload = getattr(module, "WORKLOAD", None)
    if not isinstance(workload, Workload):
        raise UserError(f"{folder / DECLARATION}.py declares no WORKLOAD = Workload(…).")
    return workload
