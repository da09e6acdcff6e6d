"""What does not fit is refused in one sentence, with its place and the right word."""

from __future__ import annotations

import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmark.suite.fields import SUITE_FIELDS, case_fields
from trainmark.suite.load import load, parse
from trainmark.suite.model import SuiteError
from trainmark.workloads import registry

CASE_FIELDS = case_fields([registry.find("resnet50").workload])


def refusal(text: str, overrides: tuple[str, ...] = ()) -> str:
    with pytest.raises(SuiteError) as refused:
        parse(text, "suite.yaml", overrides)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_an_unknown_key_of_a_case_is_named_with_its_line_its_case_and_the_right_key():
    text = "precision: fp32\ncases:\n  - name: amp\n    batchsize: 3\n"
    message = "suite.yaml:4: unknown key 'batchsize' in case 'amp'; did you mean 'batch_per_device'?"
    assert refusal(text) == message


def test_a_case_without_a_name_is_named_by_its_number():
    assert "unknown key 'precison' in case 2; did you mean 'precision'?" in refusal(
        "cases:\n  - {precision: fp32}\n  - {precison: amp}\n"
    )


def test_an_unknown_key_like_none_of_ours_is_answered_with_all_of_them():
    message = refusal("zzzzzz: 1")
    assert message.startswith(
        "suite.yaml:1: unknown key 'zzzzzz'; known are about, baseline, batch_per_device,"
    )


@pytest.mark.parametrize("key", sorted({*CASE_FIELDS, *SUITE_FIELDS} - {"cases"}))
@pytest.mark.parametrize("value", ["[[]]", "2020-01-01", "-1", "{zzz: [1]}", "''"])
def test_every_field_refuses_a_wrong_value_with_its_line_and_its_name(key, value):
    assert refusal(f"# a remark\n{key}: {value}").startswith(f"suite.yaml:2: '{key}' ")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("compile: 'yes'", "takes true, false, auto or reduce-overhead, not 'yes'"),
        ("compile: 1", "takes true, false, auto or reduce-overhead, not 1"),
        ("cuda_graph: [maybe]", "takes true, false or auto, not 'maybe'"),
        ("batch_per_device: '32'", "takes a whole number from 1 up, not '32'"),
        ("batch_per_device: 32.0", "takes a whole number from 1 up, not 32.0"),
        ("batch_per_device: yes", "takes a whole number from 1 up, not True"),
        ("repeats: 0", "takes a whole number from 1 to 10000, not 0"),
        ("repeats: {min: 9, max: 3}", "has max 3 below min 9"),
        ("repeats: {until: 0.5}", "'until' takes a width such as '±0.5%', not 0.5"),
        ("repeats: {until: '±0%'}", "'until' takes a width such as '±0.5%', not '±0%'"),
        ("layout: nchw", "takes NCHW, NHWC or any, not 'nchw'"),
        ("layout: no", "takes NCHW, NHWC or any, not False"),
        ("loss_scale: static", "takes 'dynamic' or a number above zero, not 'static'"),
        ("loss_scale: .nan", "takes 'dynamic' or a number above zero, not nan"),
        ("limits: {trial: 5 days}", "'trial' takes a time such as 90s, 30m or 2h, not '5 days'"),
        ("limits: {trial: .inf}", "'trial' takes a time such as 90s, 30m or 2h, not inf"),
        (f"limits: {{trial: {'9' * 60}}}", "'trial' takes a time such as 90s, 30m or 2h"),
        (f"limits: {{trial: {'9' * 400}h}}", "'trial' takes a time such as 90s, 30m or 2h"),
        ("measure: {steps: 0}", "'steps' takes a whole number from 1 up, not 0"),
        ("measure: 100", "takes {steps}, not 100"),
        ("topology: 8", "takes text, not 8"),
        ("topology: 0n1g", "'0n1g' is not a topology; write nodes and devices per node as in 1n8g"),
        ("precision: []", "is an empty list; give at least one value"),
        ("device: [cpu, cuda]", "takes auto, cuda or cpu, not ['cpu', 'cuda']"),
        ("environment: {A: yes}", "takes text for A, not True; put it in quotes"),
        ("environment: {A: }", "takes text for A, not None; put it in quotes"),
        ("environment: {A=B: c}", "holds 'A=B', which cannot name a variable"),
        ("name: ../elsewhere", "takes text of letters, digits, '.', '_' and '-', not '../elsewhere'"),
        ("about: [1]", "takes text, not [1]"),
        ("workload: {command: ./train, name: a/b}", "'name' takes text of letters"),
        ("workload: {name: mine}", "needs a 'command', or the name of a built-in workload"),
        ("workload: {comand: ./train}", "has no key 'comand'; did you mean 'command'?"),
        ("workload: {command: a, reader: pattern}", "needs a 'pattern', a regular expression"),
        ("workload: {command: a, pattern: '('}", "'pattern' takes a regular expression, not '(': missing )"),
        ("workload: {command: a, pattern: 'a{99999999999}'}", "'pattern' takes a regular expression"),
        ("workload: resnet5", "there is no workload 'resnet5'; did you mean 'resnet50'?"),
        ("framework: torch", "resnet50 has no framework 'torch'; did you mean 'pytorch'?"),
    ],
)
def test_a_wrong_value_is_told_what_the_field_takes(text, sentence):
    message = refusal(text)
    assert message.startswith("suite.yaml:1: ")
    assert sentence in message
    assert re.search(r"[^.?][.?]$", message)


@pytest.mark.parametrize("cases", ["5", "{}", "[]", "", "text", "[5]", "[[]]", "[text]", "[null]"])
@pytest.mark.parametrize("overrides", [(), ("precision=amp",)])
def test_cases_that_are_no_list_of_mappings_are_refused(cases, overrides):
    assert re.match(
        "suite.yaml:1: .*(list of mappings|a case is a mapping)", refusal(f"cases: {cases}", overrides)
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "suite.yaml is empty."),
        ("# nothing but a remark\n", "suite.yaml is empty"),
        ("- precision: fp32\n", "suite.yaml: a suite is a mapping of keys to values"),
        ("just text", "suite.yaml: a suite is a mapping of keys to values"),
        ("seed: 1\nseed: 2\n", "suite.yaml:2: 'seed' is given twice; keep one."),
        ("measure:\n  steps: 1\n  steps: 2\n", "suite.yaml:3: 'steps' is given twice; keep one."),
        ("measure:\n\tsteps: 1\n", "suite.yaml:2: not valid YAML: found character '\\t'"),
        ("precision: [fp32", "suite.yaml:1: not valid YAML: "),
        ("a: 1\n---\nb: 2\n", "suite.yaml:2: not valid YAML: "),
        ("yes: 1\n", "suite.yaml:1: a key must be text"),
        ("? [a]\n: 1\n", "suite.yaml:1: a key must be text"),
        ("0xffff: 1\n", "suite.yaml:1: a key must be text"),
        ("name: 2020-13-45\n", "suite.yaml:1: '2020-13-45' is no timestamp; put it in quotes"),
        ('about: "\\ud800"\n', "suite.yaml:1: the text holds a character that cannot be stored"),
        ('workload: {command: "a\\0b"}\n', "suite.yaml:1: the text holds a character that cannot be stored"),
        ("name: !!python/object/apply:os.system [ls]\n", "suite.yaml:1: the tag !!python/object/"),
        ("[" * 5000, "suite.yaml:1: the values are nested deeper than 50 levels."),
        ("seed: 1\ncases: " + "[" * 3000 + "]" * 3000, "suite.yaml:2: the values are nested deeper than"),
        ("environment: &a {b: *a}\n", "suite.yaml:1: the values are nested deeper than 50 levels."),
        ("about: &a [*a, *a]\n", "suite.yaml:1: the values are nested deeper than 50 levels."),
        ("seed: 1\nretries: !!bool maybe\n", "suite.yaml:2: 'maybe' is no bool"),
        ("seed: !!int ''\n", "suite.yaml:1: '' is no int"),
        ("seed: !!float ''\n", "suite.yaml:1: '' is no float"),
        ("seed: !!timestamp nope\n", "suite.yaml:1: 'nope' is no timestamp"),
        ("? !!str [a]\n: 1\n", "suite.yaml:1: a key must be text"),
        ('"a\\0": 1\n', "suite.yaml:1: the key holds a character that cannot be stored"),
        ("<<: 5\n", "suite.yaml:1: not valid YAML: expected a mapping"),
        ("seed: " + "9" * 5000, "suite.yaml:1: a number of 5000 characters"),
        ("seed: 0x" + "f" * 5000, "suite.yaml:1: a number of 5002 characters"),
        ("name: !!binary aGk=\n", "suite.yaml:1: the tag !!binary is not understood"),
        ("environment: !!set {a}\n", "suite.yaml:1: the tag !!set is not understood"),
        ("cases: !!omap [a: 1]\n", "suite.yaml:1: the tag !!omap is not understood"),
    ],
    ids=lambda text: ascii(text)[:40],
)
def test_the_traps_of_yaml_are_refused_with_their_line(text, sentence):
    assert refusal(text).startswith(sentence)


def test_an_anchor_may_be_used_again_for_what_cases_share():
    text = "cases:\n  - &base {precision: fp32, batch_per_device: 8}\n  - {<<: *base, batch_per_device: 16}\n"
    assert [case.batch_per_device for case in parse(text, "suite.yaml").cases] == [8, 16]


def test_a_few_lines_whose_aliases_stand_for_a_million_values_are_refused():
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 6)]
    assert "more than 50000 values" in refusal("\n".join(levels))


def test_a_long_wrong_value_does_not_flood_the_sentence():
    assert len(refusal(f"precision: {list(range(5000))}")) < 300
    assert len(refusal(f"seed: {'x' * 5000}")) < 300


def test_a_file_that_is_not_utf_8_is_refused(tmp_path):
    file = tmp_path / "suite.yaml"
    file.write_bytes(b"name: caf\xe9\n")
    with pytest.raises(SuiteError, match=r"suite.yaml is not UTF-8 text and cannot be a suite\.$"):
        load(str(file))


def test_a_huge_file_is_refused_unread(tmp_path):
    file = tmp_path / "suite.yaml"
    with file.open("wb") as sparse:
        sparse.truncate(1 << 40)
    with pytest.raises(SuiteError, match="larger than 1 MiB"):
        load(str(file))


def test_a_suite_that_is_nowhere_is_answered_with_the_nearest_or_with_all(tmp_path):
    with pytest.raises(SuiteError, match=r"there is no suite 'quik'; did you mean 'quick'\?"):
        load("quik")
    with pytest.raises(SuiteError, match=r"no suite file .*gone.yaml; built in are bert-dlperf, gpt2,"):
        load(str(tmp_path / "gone.yaml"))
    with pytest.raises(SuiteError, match=r"no suite file .*; built in are bert-dlperf, gpt2,"):
        load(f"{tmp_path}/")


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(
        ["fp32", "amp", "1n2g", "powers-of-two", "90s", "±1%", "auto", "resnet50", "pytorch", "("]
    ),
)
INNER_KEYS = ["steps", "min", "until", "command", "pattern", "name", "x"]
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(INNER_KEYS), inner, max_size=3),
    ),
    max_leaves=8,
)
KEYS = st.one_of(st.sampled_from([*CASE_FIELDS, *SUITE_FIELDS]), st.text(max_size=6))
CASES = st.lists(st.one_of(st.dictionaries(KEYS, VALUES, max_size=4), SCALARS), max_size=3)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@settings(deadline=None)
@given(
    st.dictionaries(KEYS, VALUES, max_size=6),
    st.one_of(st.none(), CASES, VALUES),
    st.lists(st.tuples(KEYS, st.text(max_size=12)).map("=".join), max_size=2),
)
def test_nothing_but_a_suite_error_comes_of_any_mapping(top, cases, overrides):
    data = top if cases is None else {**top, "cases": cases}
    try:
        parse(yaml.safe_dump(data), "suite.yaml", overrides)
    except SuiteError as error:
        assert str(error)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@settings(deadline=None)
@given(
    st.one_of(
        st.text(),
        st.text(alphabet="abc:-[]{}&*!|>'\"%@`#,?\n \t01~<=."),
        st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")),
    )
)
def test_nothing_but_a_suite_error_comes_of_any_text(text):
    try:
        parse(text, "suite.yaml", [text])
    except SuiteError as error:
        assert str(error)
