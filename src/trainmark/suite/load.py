"""From YAML and overrides to a Suite; what does not fit is refused with its place and the right word."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from trainmark import yaml_source
from trainmark.errors import nearest
from trainmark.suite import workloads
from trainmark.suite.errors import SuiteError
from trainmark.suite.fields import ALL, CASE_FIELDS, IMAGES, POWERS_OF_TWO, SUITE_FIELDS
from trainmark.suite.model import ANY, AUTO, Case, Command, Course, Rules, Suite
from trainmark.suite.topology import ONE_DEVICE, Topology, powers_of_two
from trainmark.suite.values import NAME
from trainmark.yaml_source import Source

BUILT_IN = Path(__file__).with_name("builtin")
LARGEST_SUITE_BYTES = 1 << 20
MOST_CASES = 2000
SAID_OF_COMMANDS = {"layout": "NCHW or NHWC", "compile": "true or false", "cuda_graph": "true or false"}
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
    if path.suffix in (".yaml", ".yml") or "/" in name:
        raise SuiteError(f"there is no suite file {name}; built in are {', '.join(built_in_names())}.")
    raise SuiteError(f"there is no suite '{name}'{nearest(name, built_in_names())}")


def load(name: str, overrides: Sequence[str] = (), here: Topology = ONE_DEVICE) -> Suite:
    path = find(name)
    suite = parse(read_text(path), path.name, overrides, here)
    return placed(suite, None if path.parent == BUILT_IN else str(path.resolve().parent))


def placed(suite: Suite, folder: str | None) -> Suite:
    """With the folder that its relative paths count from; a built-in one has none."""
    origin = Path(folder or Path.cwd())

    def at(path: str | None) -> str | None:
        return path and str(origin / Path(path).expanduser())

    def with_paths(case: Case) -> Case:
        own_recipe = case.recipe is not None and case.recipe.endswith(".json")
        course = case.course and replace(case.course, checkpoint_folder=at(case.course.checkpoint_folder))
        recipe = at(case.recipe) if own_recipe else case.recipe
        return replace(case, dataset=at(case.dataset), recipe=recipe, course=course)

    return replace(suite, folder=folder, cases=tuple(map(with_paths, suite.cases)))


def read_text(path: Path) -> str:
    try:
        return yaml_source.file_text(path, "a suite", LARGEST_SUITE_BYTES)
    except yaml_source.YamlError as error:
        raise SuiteError(str(error)) from error


def parse(text: str, name: str, overrides: Sequence[str] = (), here: Topology = ONE_DEVICE) -> Suite:
    """`here` is what `topology: powers-of-two` counts up to."""
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
        apply(override, origin)
    _refuse_unknown(given, {**CASE_FIELDS, **SUITE_FIELDS}, origin)
    title = _read("name", given.get("name", Path(name).stem), origin.at(("name",)))
    about = _read("about", given["about"], origin.at(("about",))) if "about" in given else ""
    defaults = {key: value for key, value in given.items() if key in CASE_FIELDS}
    cases: dict[tuple[str, ...], Case] = {}
    expanded = (
        (index, case)
        for index, own in enumerate(listed)
        for case in _cases_of(own, index, defaults, origin, here)
    )
    for count, (index, case) in enumerate(expanded, 1):
        if count > MOST_CASES:
            raise SuiteError(f"{name}: more than {MOST_CASES} cases; narrow the lists.")
        if cases.setdefault((case.slug, *case.left_open), case) != case:
            at = origin.at(("cases", index))
            raise SuiteError(f"{at}: a second, different case {case.slug}; give the two different names.")
    return Suite(
        name=title,
        about=" ".join(about.split()),
        cases=tuple(cases.values()),
        seed=_read("seed", given.get("seed", 0), origin.at(("seed",))),
        text=yaml.safe_dump(given, sort_keys=False, allow_unicode=True),
    )


def apply(override: str, origin: Source) -> None:
    """`measure.steps=50` or `precision=fp32,amp`, over the suite's value and every case's own."""
    path, equals, written = override.partition("=")
    key, _, inner = path.strip().partition(".")
    if not equals or not key:
        raise SuiteError(
            f"'{override}' is not an override; write KEY=VALUE, as in --set batch_per_device=64."
        )
    if key not in CASE_FIELDS and key not in ("name", "about", "seed"):
        raise SuiteError(f"--set {override}: unknown key '{key}'{nearest(key, CASE_FIELDS)}")
    place = f"--set {override}"
    value = _source(written or "''", place).data
    if key in CASE_FIELDS and CASE_FIELDS[key].axis and isinstance(value, str) and "," in value:
        value = [_source(part or "''", place).data for part in value.split(",")]
    holders: dict[yaml_source.Path, dict[str, Any]] = {(): origin.data}
    for index, case in enumerate(origin.data.get("cases", ())):
        # A suite's name is not its cases'.
        if key in CASE_FIELDS and isinstance(case, dict) and key in case:
            holders["cases", index] = case
    for where, holder in holders.items():
        origin.places[(*where, key)] = place
        if inner:
            held = holder.get(key)
            holder[key] = {**(held if isinstance(held, dict) else {}), inner: value}
        else:
            holder[key] = value


def _cases_of(
    given: Any, index: int, defaults: Mapping[str, Any], origin: Source, here: Topology
) -> Iterator[Case]:
    place: yaml_source.Path = ("cases", index)
    if not isinstance(given, dict):
        raise SuiteError(f"{origin.at(place)}: a case is a mapping such as {{precision: amp}}.")
    called = f"'{given['name']}'" if "name" in given else index + 1
    known = {**CASE_FIELDS, "name": SUITE_FIELDS["name"]}
    _refuse_unknown(given, known, origin, place, f" in case {called}")

    def at(key: str) -> str:
        return origin.at((*place, key) if key in given else (key,))

    users_own = isinstance(given.get("workload", defaults.get("workload")), dict)
    single: dict[str, Any] = {"label": _read("name", given["name"], at("name")) if "name" in given else None}
    axes: dict[str, list[Any]] = {}
    for key, field in CASE_FIELDS.items():
        value = given.get(key, defaults.get(key))
        if value is None:
            single[key] = None if users_own and field.ours else field.default
        elif field.axis and isinstance(value, list):
            if not value:
                raise SuiteError(f"{at(key)}: '{key}' is an empty list; give at least one value.")
            axes[key] = [_read(key, item, at(key)) for item in value]
        else:
            single[key] = _read(key, value, at(key))
    for key in ("framework", "topology"):
        if key in single:
            axes[key] = [single.pop(key)]
    axes["framework"] = _frameworks(axes["framework"], single["workload"])
    spread = [powers_of_two(here) if item == POWERS_OF_TWO else [item] for item in axes["topology"]]
    axes["topology"] = list(itertools.chain.from_iterable(spread))
    for chosen in itertools.product(*axes.values()):
        yield _case({**single, **dict(zip(axes, chosen, strict=True))}, at)


def _frameworks(named: Sequence[str], workload: str | Command) -> list[str]:
    """`all` is every one that the workload has, installed or not: what is not is skipped with a word."""
    if isinstance(workload, Command) or workload not in workloads.built_in():
        return list(named)
    spread = (workloads.frameworks(workload) if name == ALL else (name,) for name in named)
    return list(dict.fromkeys(itertools.chain.from_iterable(spread)))


def _case(read: Mapping[str, Any], at: Callable[[str], str]) -> Case:
    workload, framework = read["workload"], read["framework"]
    if isinstance(workload, Command):
        framework = None
        if read["container"]:
            raise SuiteError(f"{at('container')}: a command starts its own container; leave this out.")
        for key, words in SAID_OF_COMMANDS.items():
            if read[key] in (ANY, AUTO):
                raise SuiteError(f"{at(key)}: a command cannot be asked for its {key}; say {words}.")
    elif workload not in workloads.built_in():
        known = nearest(workload, workloads.built_in())
        raise SuiteError(f"{at('workload')}: there is no workload '{workload}'{known}")
    elif framework not in workloads.frameworks(workload):
        known = nearest(framework, workloads.frameworks(workload))
        raise SuiteError(f"{at('framework')}: {workload} has no framework '{framework}'{known}")
    limits = read["limits"]
    topology: Topology = read["topology"]
    course = _course(read, at)
    if read["data"] is None and not isinstance(workload, Command):
        read = {**read, "data": IMAGES if read["dataset"] else "synthetic"}
    of_images = read["data"] == IMAGES and not isinstance(workload, Command)
    if course and not of_images:
        raise SuiteError(
            f"{at('until' if course.until else 'epochs')}: epochs and finish lines are for built-in "
            "workloads with data: images."
        )
    return Case(
        workload=workload,
        framework=framework,
        precision=read["precision"],
        loss_scale=read["loss_scale"] if read["precision"] == "amp" else None,
        layout=read["layout"],
        engine=read["engine"],
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
        container=read["container"],
        environment=tuple(sorted(read["environment"].items())),
        dataset=read["dataset"] if of_images else None,
        loader=read["loader"] if of_images else None,
        workers=read["workers"] if of_images else None,
        on_bad=read["on_bad"] if of_images else None,
        recipe=read["recipe"],
        course=course,
        rules=Rules(
            repeats=read["repeats"],
            warmup_steps=read["warmup"].get("steps", Rules.warmup_steps),
            measure_steps=read["measure"].get("steps", Rules.measure_steps),
            trial_limit=limits.get("trial", LONGEST_COURSE if course else Rules.trial_limit),
            silence_limit=limits.get("silence", Rules.silence_limit),
            retries=read["retries"],
        ),
    )


def _course(read: Mapping[str, Any], at: Callable[[str], str]) -> Course | None:
    until, kept = read["until"], read["checkpoint"]
    if not until and read["epochs"] is None:
        if kept:
            raise SuiteError(f"{at('checkpoint')}: checkpoints are for training with 'epochs' or 'until'.")
        return None
    return Course(
        epochs=read["epochs"],
        until=tuple(sorted(until.items())),
        checkpoint_steps=kept.get("steps", Course.checkpoint_steps),
        checkpoints_kept=kept.get("keep", Course.checkpoints_kept),
        checkpoint_folder=kept.get("folder"),
    )


def _refuse_unknown(
    given: Mapping[str, Any],
    known: Mapping[str, Any],
    origin: Source,
    place: yaml_source.Path = (),
    where: str = "",
) -> None:
    for key in given:
        if key not in known:
            raise SuiteError(f"{origin.at((*place, key))}: unknown key '{key}'{where}{nearest(key, known)}")


def _read(key: str, value: Any, at: str) -> Any:
    field = CASE_FIELDS.get(key) or SUITE_FIELDS[key]
    try:
        return field.parse(value)
    except ValueError as error:
        sentence = str(error)
        raise SuiteError(f"{at}: '{key}' {sentence}{'' if sentence[-1] in '.?' else '.'}") from error


def _source(text: str, name: str) -> Source:
    try:
        return yaml_source.read(text, name)
    except yaml_source.YamlError as error:
        raise SuiteError(str(error)) from error
