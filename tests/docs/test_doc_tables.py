"""The tables on the pages against the code that they describe."""

import ast
import re

import pytest
from doc_pages import ROOT, code, page, section, table

from trainmark.launch.outcome import Outcome
from trainmark.logs.trials.auto import reader_names
from trainmark.measure.doubts import DoubtCode
from trainmark.measure.figure import WindowVerdict
from trainmark.measure.statistics import median_interval, ratio_interval
from trainmark.suite.fields import SUITE_FIELDS, case_fields
from trainmark.suite.load import parse
from trainmark.workloads import registry as families
from trainmark.workloads.resnet50.shared import recipe

CASE_FIELDS = case_fields([families.find("resnet50").workload])

SOURCE = ROOT / "src" / "trainmark"
FIELDS = {code(row["field"])[0]: row for row in table(section(page("docs/suites.md"), "Fields"))}
# Names that other rooms may use without knowing a room.
COMMON = {
    "__init__",
    "__main__",
    "__version__",
    "base",
    "metric",
}


def test_every_field_of_a_suite_is_in_the_table_and_no_other():
    assert set(FIELDS) == {*CASE_FIELDS, *SUITE_FIELDS}


@pytest.mark.parametrize("name", CASE_FIELDS)
def test_the_table_says_which_fields_are_axes(name):
    assert FIELDS[name]["axis"] == ("yes" if CASE_FIELDS[name].axis else "")


@pytest.mark.parametrize(
    "name", [name for name, row in FIELDS.items() if name in CASE_FIELDS and code(row["default"])]
)
def test_a_default_in_the_table_changes_nothing_when_it_is_written_out(name):
    written = f"{name}: {code(FIELDS[name]['default'])[0]}"
    assert parse(f"about: x\n{written}", "s.yaml").cases == parse("about: x", "s.yaml").cases


def test_a_field_without_a_default_in_the_table_has_none():
    assert {name for name, row in FIELDS.items() if row["default"] == "–"} == {
        name for name, field in CASE_FIELDS.items() if field.default is None
    }


def test_every_doubt_is_in_the_table_and_no_other():
    rows = table(section(page("docs/method.md"), "Doubts"))
    assert sorted(code(row["code"])[0] for row in rows) == sorted(doubt.value for doubt in DoubtCode)


def test_every_doubt_has_the_severity_that_the_table_says():
    rows = table(section(page("docs/method.md"), "Doubts"))
    documented = {code(row["code"])[0]: row["severity"] for row in rows}
    assert documented == {doubt.value: doubt.severity.value for doubt in DoubtCode}


def test_the_doubts_called_reserved_are_those_that_nothing_raises():
    rows = table(section(page("docs/method.md"), "Doubts"))
    reserved = {code(row["code"])[0] for row in rows if "reserved" in row["raised when"]}
    measure = "".join(
        path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py") if path.name != "doubts.py"
    )
    assert reserved == {doubt.value for doubt in DoubtCode if f"DoubtCode.{doubt.name}" not in measure}


def test_every_verdict_is_in_the_table():
    rows = table(section(page("docs/method.md"), "Warm-up and the steady window"))
    assert {code(row["verdict"])[0] for row in rows} == {verdict.value for verdict in WindowVerdict}


def test_the_confidence_of_each_number_of_trials_is_as_the_table_says():
    ranks, confidences = table(section(page("docs/method.md"), "The result and its interval"))
    for trials in list(ranks)[1:]:
        interval = median_interval(list(range(1, int(trials) + 1)))
        assert interval.low == int(ranks[trials])
        assert f"{interval.confidence:.2%}" == f"{confidences[trials]}%"


def test_the_fewest_trials_for_a_ratio_are_as_the_page_says():
    four, five = [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0, 5.0]
    assert ratio_interval(four, four).confidence >= 0.95 > ratio_interval(four[:3], four[:3]).confidence
    assert f"{ratio_interval(five, five).confidence:.1%}" == "96.8%"


def test_the_operations_of_an_image_are_as_the_page_says():
    assert f"{recipe.flops_per_image(224) / 1e9:.1f} GFLOP" in page("docs/method.md")


def test_every_source_that_the_statistics_cite_is_in_the_literature():
    cited = re.compile(r"\b([A-Z][a-z]+)(?: et al\.|(?:, [A-Z][a-z]+)* & [A-Z][a-z]+)? \(?((?:19|20)\d\d)\b")
    listed = section(page("docs/method.md"), "Literature").splitlines()
    citations = {
        each
        for path in (SOURCE / "measure").rglob("*.py")
        for each in cited.findall(path.read_text(encoding="utf-8"))
    }
    assert citations
    assert {
        each for each in citations if not any(each[0] in line and each[1] in line for line in listed)
    } == set()


def test_every_outcome_is_in_the_table():
    rows = table(section(page("docs/architecture.md"), "From suite to figure"))
    assert {code(row["outcome"])[0] for row in rows} == {outcome.value for outcome in Outcome}


def test_every_room_imports_what_the_table_says():
    rows = table(section(page("docs/architecture.md"), "The rooms"))
    documented = {code(row["room"])[0]: set(code(row["imports"])) for row in rows}
    assert documented == imports_by_room()


def test_a_room_stands_in_the_table_above_those_that_import_it():
    above = set()
    for row in table(section(page("docs/architecture.md"), "The rooms")):
        assert set(code(row["imports"])) <= above
        above.add(code(row["room"])[0])


def imports_by_room():
    """By what each file imports; `import trainmark.room` counts as well."""
    rooms = {}
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).with_suffix("").parts[0]
        named = rooms.setdefault(room, set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            ours = [name.split(".")[1:] for name in names if name.startswith("trainmark.")]
            named |= {words[0] for words in ours}
    return {room: named - COMMON - {room} for room, named in rooms.items() if room not in COMMON}


def test_every_reader_that_a_suite_may_name_is_described():
    described = page("docs/any-program.md") + page("docs/reading.md")
    assert [name for name in reader_names() if f"`{name}`" not in described] == []


def test_exactly_the_dependencies_that_are_required_or_pinned_have_a_reason():
    pins = [*ROOT.glob("requirements/*.txt"), *SOURCE.glob("machine/frameworks/locks/*.txt")]
    pinned = "".join(path.read_text(encoding="utf-8") for path in pins)
    required = re.findall(r'"([A-Za-z][\w.-]*)[<>=~!]', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    explained = re.findall(r"^\| (`[^|]+`) \|", page("docs/dependencies.md"), re.MULTILINE)
    needed = [*required, *re.findall(r"^([A-Za-z][\w.-]*)==", pinned, re.MULTILINE)]
    assert {plain(name) for cell in explained for name in code(cell)} == set(map(plain, needed))


def plain(package):
    """Packages are the same whose names differ only so; their authors write them as they like."""
    return package.lower().replace("_", "-")
