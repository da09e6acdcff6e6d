"""From YAML and overrides to a Suite; what does not fit is refused with its place and the right word."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from trainmark.suite import source, workloads
from trainmark.suite.errors import SuiteError, nearest
from trainmark.suite.fields import CASE_FIELDS, POWERS_OF_TWO, SUITE_FIELDS
from trainmark.suite.model import Case, Command, Rules, Suite
from trainmark.suite.source import Source
from trainmark.suite.topology import Topology, powers_of_two

BUILT_IN = Path(__file__).with_name("builtin")
LARGEST_SUITE_BYTES = 1 << 20
MOST_CASES = 2000
SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def built_in_names() -> list[str]:
    return sorted(path.stem for path in BUILT_IN.glob("*.yaml"))


def find(name: str) -> Path:
    """The file behind a built-in name or a path."""
    if (built_in := BUILT_IN / f"{name}.yaml").is_file() and SAFE_NAME.fullmatch(name):
        return built_in
    path = Path(name)
    if path.is_file():
        return path
    if path.suffix in (".yaml", ".yml") or "/" in name:
        raise SuiteError(f"there is no suite file {name}; built in are {', '.join(built_in_names())}.")
    raise SuiteError(f"there is no suite '{name}'{nearest(name, built_in_names())}")


def load(name: str, overrides: Sequence[str] = (), devices_here: int = 1) -> Suite:
    path = find(name)
    if path.stat().st_size > LARGEST_SUITE_BYTES:
        raise SuiteError(f"{name} is larger than 1 MiB and cannot be a suite.")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SuiteError(f"{name} cannot be read as UTF-8 text: {error}.") from error
    suite = parse(text, path.name, overrides, devices_here)
    folder = None if path.parent == BUILT_IN else str(path.resolve().parent)
    return Suite(suite.name, suite.about, suite.cases, suite.seed, suite.text, folder)


def parse(text: str, name: str, overrides: Sequence[str] = (), devices_here: int = 1) -> Suite:
    """`devices_here` is what `topology: powers-of-two` counts up to."""
    origin = source.read(text, name)
    if not isinstance(origin.data, dict):
        raise SuiteError(
            f"{name}: a suite is a mapping of keys to values; see `trainmark suites show quick`."
        )
    for override in overrides:
        apply(override, origin.data)
    top = {key: value for key, value in origin.data.items() if key != "cases"}
    _refuse_unknown(top, {**CASE_FIELDS, **SUITE_FIELDS}, origin, ())
    title = _read("name", origin.data.get("name", Path(name).stem), origin, ("name",))
    if not SAFE_NAME.fullmatch(title):
        raise SuiteError(
            f"{origin.at(('name',))}: the name '{title}' must be letters, digits, '.', '_' or '-'."
        )
    listed = origin.data.get("cases") or [{}]
    if not isinstance(listed, list):
        raise SuiteError(f"{origin.at(('cases',))}: 'cases' takes a list of mappings.")
    defaults = {key: value for key, value in top.items() if key in CASE_FIELDS}
    cases: dict[str, Case] = {}
    for index, given in enumerate(listed):
        for case in _cases_of(given, index, defaults, origin, devices_here):
            if cases.setdefault(case.slug, case) != case:
                at = origin.at(("cases", index))
                raise SuiteError(f"{at}: a second, different case {case.slug}; give the two different names.")
            if len(cases) > MOST_CASES:
                raise SuiteError(f"{name}: more than {MOST_CASES} cases; narrow the lists.")
    return Suite(
        name=title,
        about=" ".join(str(origin.data.get("about", "")).split()),
        cases=tuple(cases.values()),
        seed=_read("seed", origin.data.get("seed", 0), origin, ("seed",)),
        text=yaml.safe_dump(origin.data, sort_keys=False, allow_unicode=True),
    )


def apply(override: str, data: dict[str, Any]) -> None:
    """`measure.steps=50` or `precision=fp32,amp`, over the suite's value and every case's own."""
    path, equals, written = override.partition("=")
    key, _, inner = path.strip().partition(".")
    if not equals or not key:
        raise SuiteError(
            f"'{override}' is not an override; write KEY=VALUE, as in --set batch_per_device=64."
        )
    if key not in CASE_FIELDS and key not in ("name", "about", "seed"):
        raise SuiteError(f"--set {override}: unknown key '{key}'{nearest(key, CASE_FIELDS)}")
    value = source.read(written or "''", f"--set {override}").data
    if key in CASE_FIELDS and CASE_FIELDS[key].axis and isinstance(value, str) and "," in value:
        value = [source.read(part, f"--set {override}").data for part in value.split(",")]
    holders = [data, *(case for case in data.get("cases") or [] if isinstance(case, dict) and key in case)]
    for holder in holders:
        if inner:
            held = holder.get(key)
            holder[key] = {**(held if isinstance(held, dict) else {}), inner: value}
        else:
            holder[key] = value


def _cases_of(
    given: Any, index: int, defaults: Mapping[str, Any], origin: Source, devices_here: int
) -> Iterator[Case]:
    place: source.Path = ("cases", index)
    if not isinstance(given, dict):
        raise SuiteError(
            f"{origin.at(place)}: a case is a mapping such as {{precision: amp}}, not {given!r}."
        )
    _refuse_unknown(given, {**CASE_FIELDS, "name": SUITE_FIELDS["name"]}, origin, place)
    if "name" in given and not SAFE_NAME.fullmatch(str(given["name"])):
        raise SuiteError(f"{origin.at((*place, 'name'))}: a case's name is letters, digits, '.', '_' or '-'.")
    single: dict[str, Any] = {"label": given.get("name")}
    axes: dict[str, list[Any]] = {}
    for key, field in CASE_FIELDS.items():
        path = (*place, key) if key in given else (key,)
        value = given.get(key, defaults.get(key))
        if value is None:
            single[key] = field.default
        elif field.axis and isinstance(value, list):
            if not value:
                raise SuiteError(f"{origin.at(path)}: '{key}' is an empty list; give at least one value.")
            axes[key] = [_read(key, item, origin, path) for item in value]
        else:
            single[key] = _read(key, value, origin, path)
    if "topology" in single:
        axes["topology"] = [single.pop("topology")]
    spread = [powers_of_two(devices_here) if item == POWERS_OF_TWO else [item] for item in axes["topology"]]
    axes["topology"] = list(itertools.chain.from_iterable(spread))
    for chosen in itertools.product(*axes.values()):
        yield _case({**single, **dict(zip(axes, chosen, strict=True))}, origin, place)


def _case(read: Mapping[str, Any], origin: Source, place: source.Path) -> Case:
    workload, framework = read["workload"], read["framework"]
    if isinstance(workload, Command):
        framework = None
    elif workload not in workloads.built_in():
        known = nearest(workload, workloads.built_in())
        raise SuiteError(f"{origin.at((*place, 'workload'))}: there is no workload '{workload}'{known}")
    elif framework not in workloads.frameworks(workload):
        known = nearest(framework, workloads.frameworks(workload))
        at = origin.at((*place, "framework"))
        raise SuiteError(f"{at}: {workload} has no framework '{framework}'{known}")
    limits = read["limits"]
    topology: Topology = read["topology"]
    return Case(
        workload=workload,
        framework=framework,
        precision=read["precision"],
        loss_scale=read["loss_scale"] if read["precision"] == "amp" else None,
        layout=read["layout"],
        compile=read["compile"],
        cuda_graph=read["cuda_graph"],
        data=read["data"],
        image_size=read["image_size"],
        batch_per_device=read["batch_per_device"],
        topology=topology,
        device=read["device"],
        when=read["when"],
        label=read["label"],
        threads=read["threads"],
        python=read["python"],
        environment=tuple(sorted(read["environment"].items())),
        rules=Rules(
            repeats=read["repeats"],
            warmup_steps=read["warmup"].get("steps", Rules.warmup_steps),
            measure_steps=read["measure"].get("steps", Rules.measure_steps),
            trial_limit=limits.get("trial", Rules.trial_limit),
            silence_limit=limits.get("silence", Rules.silence_limit),
            retries=read["retries"],
        ),
    )


def _refuse_unknown(
    given: Mapping[Any, Any], known: Mapping[str, Any], origin: Source, place: source.Path
) -> None:
    for key in given:
        if key not in known:
            where = f" in case {place[1] + 1}" if place and isinstance(place[1], int) else ""
            at = origin.at((*place, str(key)))
            raise SuiteError(f"{at}: unknown key '{key}'{where}{nearest(str(key), known)}")


def _read(key: str, value: Any, origin: Source, path: source.Path) -> Any:
    field = CASE_FIELDS.get(key) or SUITE_FIELDS[key]
    try:
        return field.parse(value)
    except ValueError as error:
        raise SuiteError(f"{origin.at(path)}: '{key}' {error}.") from error
