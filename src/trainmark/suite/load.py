"""From YAML and overrides to a Suite; what does not fit is refused with its place and the right word."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from trainmark.base import yaml_source
from trainmark.base.errors import UserError, nearest
from trainmark.base.yaml_source import YamlDocument
from trainmark.suite.fields import ALL, POWERS_OF_TWO, SUITE_FIELDS, SYNTHETIC, Field, case_fields
from trainmark.suite.model import (
    ANY,
    AUTO,
    ONE_DEVICE,
    UNTOUCHED,
    Case,
    CaseRules,
    Suite,
    SuiteError,
    Topology,
    TrainingPlan,
    powers_of_two,
)
from trainmark.suite.values import NAME
from trainmark.workloads import registry
from trainmark.workloads.declaration import Workload
from trainmark.workloads.registry import Family

BUILT_IN = Path(__file__).with_name("builtin")
LARGEST_SUITE_BYTES = 1 << 20
MOST_CASES = 2000
COMMAND_CHOICES = {"layout": "NCHW or NHWC", "compile": "true or false", "cuda_graph": "true or false"}
# Fields of a case under the names and values of the suite, and those that only stored data have.
TAKEN_AS_READ = (
    "precision layout engine compile cuda_graph data batch_per_device topology device when label threads"
    " python container"
)
OF_STORED_DATA = ("dataset", "loader", "workers", "on_bad")
LONGEST_COURSE = 30 * 86400.0  # seconds: training to a finish line is not given up for being long


def built_in_names() -> list[str]:
    return sorted(path.stem for path in BUILT_IN.glob("*.yaml"))


def find(name: str) -> Path:
    """The file behind a built-in name or a path."""
    if (built_in := BUILT_IN / f"{name}.yaml").is_file() and NAME.fullmatch(name):
        return built_in
    path = Path(name)
    if path.is_file():
        return path
    if path.exists() and not path.is_dir():
        raise SuiteError(f"{name} is no regular file; a suite is a YAML file.")
    if path.suffix in (".yaml", ".yml") or "/" in name:
        raise SuiteError(f"there is no suite file {name}; built in are {', '.join(built_in_names())}.")
    raise SuiteError(f"there is no suite '{name}'{nearest(name, built_in_names())}")


def load(name: str, overrides: Sequence[str | Override] = (), here: Topology = ONE_DEVICE) -> Suite:
    path = find(name)
    folder = None if path.parent == BUILT_IN else str(path.resolve().parent)
    return parse(read_text(path), path.name, overrides, here, folder)


def _placed(case: Case, origin: Path) -> Case:
    """Resolve the relative paths of a case."""

    def at(path: str | None) -> str | None:
        return path and str(origin / Path(path).expanduser())

    own_recipe = case.recipe is not None and case.recipe.endswith(".json")
    course = case.course and replace(case.course, checkpoint_folder=at(case.course.checkpoint_folder))
    recipe = at(case.recipe) if own_recipe else case.recipe
    return replace(case, dataset=at(case.dataset), recipe=recipe, course=course)


def read_text(path: Path) -> str:
    try:
        return yaml_source.file_text(path, "a suite", LARGEST_SUITE_BYTES)
    except yaml_source.YamlError as error:
        raise SuiteError(str(error)) from error


def parse(
    text: str,
    name: str,
    overrides: Sequence[str | Override] = (),
    here: Topology = ONE_DEVICE,
    folder: str | None = None,
) -> Suite:
    """`here` is what `topology: powers-of-two` counts up to, `folder` what relative paths count from."""
    origin = _source(text, name)
    if not isinstance(origin.data, dict):
        raise SuiteError(
            f"{name}: a suite is a mapping of keys to values; see `trainmark suites show quick`."
        )
    given = origin.data
    listed = given.get("cases", [{}])
    if not isinstance(listed, list) or not listed:
        raise SuiteError(f"{origin.at(('cases',))}: 'cases' takes a list of mappings, one a case.")
    for override in overrides:
        apply_override(override, origin)
    home = Path(folder or Path.cwd())
    templates = [_template(own, index, origin, home) for index, own in enumerate(listed)]
    known = {key: field for template in templates for key, field in template.fields.items()}
    _refuse_unknown(given, {**known, **SUITE_FIELDS}, origin)
    title = _read(SUITE_FIELDS, "name", given.get("name", Path(name).stem), origin.at(("name",)))
    about = _read(SUITE_FIELDS, "about", given["about"], origin.at(("about",))) if "about" in given else ""
    cases: dict[tuple[str, ...], Case] = {}
    expanded = ((index, case) for index, template in enumerate(templates) for case in template.cases(here))
    for count, (index, case) in enumerate(expanded, 1):
        if count > MOST_CASES:
            raise SuiteError(f"{name}: more than {MOST_CASES} cases; narrow the lists.")
        if cases.setdefault((case.slug, *case.left_open), case) != case:
            at = origin.at(("cases", index))
            raise SuiteError(f"{at}: a second, different case {case.slug}; give the two different names.")
    return Suite(
        name=title,
        about=" ".join(about.split()),
        cases=tuple(_placed(case, home) for case in cases.values()),
        seed=_read(SUITE_FIELDS, "seed", given.get("seed", 0), origin.at(("seed",))),
        text=yaml.safe_dump(given, sort_keys=False, allow_unicode=True),
        folder=folder,
        baseline=_baseline(given["baseline"], list(cases.values()), origin.at(("baseline",)))
        if "baseline" in given
        else None,
    )


def _baseline(given: Any, cases: Sequence[Case], at: str) -> str:
    name: str = _read(SUITE_FIELDS, "baseline", given, at)
    if sum(case.goes_by(name) for case in cases) != 1 or len(cases) < 2:
        known = ", ".join(case.slug for case in cases)
        raise SuiteError(f"{at}: 'baseline' names one of two or more cases; they are {known}.")
    return name


@dataclass(frozen=True)
class Override:
    """A change to the suite, and the option of the command line by which it was written."""

    text: str
    option: str


def apply_override(override: str | Override, origin: YamlDocument) -> None:
    """`measure.steps=50` or `precision=fp32,amp`, over the suite's value and every case's own."""
    if isinstance(override, str):
        override = Override(override, f"--set {override}")
    text, place = override.text, override.option
    path, equals, written = text.partition("=")
    key, _, inner = path.strip().partition(".")
    if not equals or not key:
        raise SuiteError(f"'{text}' is not an override; write KEY=VALUE, as in --set batch_per_device=64.")
    usual = case_fields([registry.find(registry.DEFAULT).workload])
    if key == "cases":
        raise SuiteError(f"{place}: unknown key '{key}'{nearest(key, usual)}")
    value = _source(written or "''", place).data
    is_axis = key not in SUITE_FIELDS and (key not in usual or usual[key].axis)
    if is_axis and isinstance(value, str) and "," in value:
        value = [_source(part or "''", place).data for part in value.split(",")]
    holders: dict[yaml_source.Path, dict[str, Any]] = {(): origin.data}
    for index, case in enumerate(origin.data.get("cases", ())):
        # A suite's name is not its cases'.
        if key not in SUITE_FIELDS and isinstance(case, dict) and key in case:
            holders["cases", index] = case
    for where, holder in holders.items():
        origin.places[(*where, key)] = place
        if inner:
            current = holder.get(key)
            holder[key] = {**(current if isinstance(current, dict) else {}), inner: value}
        else:
            holder[key] = value


@dataclass(frozen=True)
class _Template:
    """A case as it is written, before its lists become the matrix; `family` is None for a user's program."""

    given: Mapping[str, Any]
    defaults: Mapping[str, Any]
    family: Family | None
    fields: Mapping[str, Field]
    at: Callable[[str], str]

    def cases(self, here: Topology) -> Iterator[Case]:
        given, at = self.given, self.at
        label = _read(SUITE_FIELDS, "name", given["name"], at("name")) if "name" in given else None
        single: dict[str, Any] = {"label": label}
        axes: dict[str, list[Any]] = {}
        for key, field in self.fields.items():
            value = given.get(key, self.defaults.get(key))
            if value is None:
                unknown = field.ours or (self._untouched and key == "batch_per_device")
                single[key] = None if self.family is None and unknown else field.default
            elif field.axis and isinstance(value, list):
                if not value:
                    raise SuiteError(f"{at(key)}: '{key}' is an empty list; give at least one value.")
                axes[key] = [_read(self.fields, key, item, at(key)) for item in value]
            else:
                single[key] = _read(self.fields, key, value, at(key))
        for key in ("framework", "topology"):
            if key in single:
                axes[key] = [single.pop(key)]
        axes["framework"] = self._frameworks(axes["framework"])
        spread = [powers_of_two(here) if item == POWERS_OF_TWO else [item] for item in axes["topology"]]
        axes["topology"] = list(itertools.chain.from_iterable(spread))
        for chosen in itertools.product(*axes.values()):
            yield _case({**single, **dict(zip(axes, chosen, strict=True))}, self.family, at)

    @property
    def _untouched(self) -> bool:
        """Whether the program is only watched: nobody hands it a batch size."""
        workload = self.given.get("workload", self.defaults.get("workload"))
        return isinstance(workload, dict) and workload.get("reader") == UNTOUCHED

    def _frameworks(self, named: Sequence[str]) -> list[str]:
        """`all` is every one that the workload has, installed or not: what is not is skipped with a word."""
        if self.family is None:
            return list(named)
        spread = (self.family.frameworks if name == ALL else (name,) for name in named)
        return list(dict.fromkeys(itertools.chain.from_iterable(spread)))


def _template(given: Any, index: int, origin: YamlDocument, home: Path) -> _Template:
    place: yaml_source.Path = ("cases", index)
    if not isinstance(given, dict):
        raise SuiteError(f"{origin.at(place)}: a case is a mapping such as {{precision: amp}}.")

    def at(key: str) -> str:
        return origin.at((*place, key) if key in given else (key,))

    defaults = {key: value for key, value in origin.data.items() if key not in SUITE_FIELDS}
    named = given.get("workload", defaults.get("workload", registry.DEFAULT))
    users_own = isinstance(named, dict)
    family = None if users_own else _family(named, home, at)
    workloads = (
        [each.workload for each in registry.families().values()] if family is None else [family.workload]
    )
    fields = case_fields(workloads)
    called = f"'{given['name']}'" if "name" in given else index + 1
    _refuse_unknown(given, {**fields, "name": SUITE_FIELDS["name"]}, origin, place, f" in case {called}")
    return _Template(given, defaults, family, fields, at)


def _family(named: Any, home: Path, at: Callable[[str], str]) -> Family:
    try:
        # What is no text is refused where the field is read.
        is_text = isinstance(named, str) and named.strip()
        return registry.find(_located(named, home) if is_text else registry.DEFAULT)
    except UserError as error:
        raise SuiteError(f"{at('workload')}: {error}") from error


def _located(workload: str, home: Path) -> str:
    """The name of a family, or the path of its folder in full."""
    return str(home / workload) if registry.is_path(workload) and workload[0] != "~" else workload


def _case(read: Mapping[str, Any], family: Family | None, at: Callable[[str], str]) -> Case:
    workload, framework = read["workload"], read["framework"]
    if family is None:
        framework = None
        if read["container"]:
            raise SuiteError(f"{at('container')}: a command starts its own container; leave this out.")
        for key, words in COMMAND_CHOICES.items():
            if read[key] in (ANY, AUTO):
                raise SuiteError(f"{at(key)}: a command cannot be asked for its {key}; say {words}.")
    elif framework not in family.frameworks:
        known = nearest(framework, family.frameworks)
        raise SuiteError(f"{at('framework')}: {family.workload.name} has no framework '{framework}'{known}")
    limits = read["limits"]
    course = _course(read, at)
    declared = family.workload if family else None
    if read["data"] is None and declared is not None:
        read = {**read, "data": (*declared.datasets, SYNTHETIC[0])[0] if read["dataset"] else SYNTHETIC[0]}
    stored = declared is not None and read["data"] in declared.datasets
    if course and not stored and not (declared and declared.learnable):
        key = "until" if course.until else "epochs"
        raise SuiteError(f"{at(key)}: {_cannot_train_by_epochs(declared)}")
    known_axes = registry.axes() if declared is None else {axis.name: axis for axis in declared.axes}
    standard = declared.standard_recipe if declared else None
    return Case(
        workload=workload if family is None else family.key,
        framework=framework,
        loss_scale=read["loss_scale"] if read["precision"] == "amp" else None,
        axes=tuple((name, read[name]) for name in known_axes if read[name] is not None),
        environment=tuple(sorted(read["environment"].items())),
        **{name: read[name] for name in (*TAKEN_AS_READ.split(), *(OF_STORED_DATA if stored else ()))},
        recipe=None if read["recipe"] == standard else read["recipe"],
        course=course,
        rules=CaseRules(
            repeats=read["repeats"],
            warmup_steps=read["warmup"].get("steps", CaseRules.warmup_steps),
            measure_steps=read["measure"].get("steps", CaseRules.measure_steps),
            trial_limit=limits.get("trial", LONGEST_COURSE if course else CaseRules.trial_limit),
            silence_limit=limits.get("silence", CaseRules.silence_limit),
            retries=read["retries"],
        ),
    )


def _cannot_train_by_epochs(declared: Workload | None) -> str:
    if declared is None:
        return "a command decides itself how long it trains; epochs and finish lines are for workloads."
    if declared.datasets:
        return f"epochs and finish lines need data to learn from; say data: {' or '.join(declared.datasets)}."
    return f"{declared.name} trains for a number of steps only; leave 'epochs' and 'until' out."


def _course(read: Mapping[str, Any], at: Callable[[str], str]) -> TrainingPlan | None:
    until, checkpoint = read["until"], read["checkpoint"]
    if not until and read["epochs"] is None:
        if checkpoint:
            raise SuiteError(f"{at('checkpoint')}: checkpoints are for training with 'epochs' or 'until'.")
        return None
    return TrainingPlan(
        epochs=read["epochs"],
        until=tuple(sorted(until.items())),
        checkpoint_steps=checkpoint.get("steps", TrainingPlan.checkpoint_steps),
        checkpoints_kept=checkpoint.get("keep", TrainingPlan.checkpoints_kept),
        checkpoint_folder=checkpoint.get("folder"),
    )


def _refuse_unknown(
    given: Mapping[str, Any],
    known: Mapping[str, Any],
    origin: YamlDocument,
    place: yaml_source.Path = (),
    where: str = "",
) -> None:
    for key in given:
        if key not in known:
            raise SuiteError(f"{origin.at((*place, key))}: unknown key '{key}'{where}{nearest(key, known)}")


def _read(fields: Mapping[str, Field], key: str, value: Any, at: str) -> Any:
    try:
        return fields[key].parse(value)
    except ValueError as error:
        sentence = str(error)
        raise SuiteError(f"{at}: '{key}' {sentence}{'' if sentence[-1] in '.?' else '.'}") from error


def _source(text: str, name: str) -> YamlDocument:
    try:
        return yaml_source.read(text, name)
    except yaml_source.YamlError as error:
        raise SuiteError(str(error)) from error
