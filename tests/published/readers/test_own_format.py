"""A reader configured by a regular expression, without code."""

from __future__ import annotations

import pytest

from trainmark.base.errors import UserError
from trainmark.logs.format import Kind, Scope, TimeFormat
from trainmark.logs.format_file import FOLDER, custom_format, our_format
from trainmark.logs.read import parsed_logs
from trainmark.logs.recognition import named_format

YAML = r"""
name: my-trainer
framework: pytorch
step: 'step (?P<step>\d+) took (?P<ms>[\d.]+) ms'
rate: {unit: images, scope: global, kind: instant}
clock: unix
settings:
  batch_per_device: 'batch=(?P<value>\d+)'
  world_size: 4
  precision: amp
"""


@pytest.fixture
def written(tmp_path):
    def write(text: str):
        path = tmp_path / "my.yaml"
        path.write_text(text)
        return path

    return write


def test_a_log_is_read_by_the_patterns_of_the_file(written, tmp_path):
    log = tmp_path / "train.log"
    log.write_text("batch=32\n" + "".join(f"step {n} took 250.0 ms\n" for n in range(1, 51)))
    (read,) = parsed_logs([str(log)], named_format(str(written(YAML))))
    (run,) = read.runs
    assert run.settings == {"batch_per_device": 32, "world_size": 4, "precision": "amp"}
    assert run.steps["ms"].tolist() == [250.0] * 50


def test_what_is_left_out_has_the_plain_meaning(written):
    format = custom_format(written(r"step: 'loss (?P<loss>\S+)'"))
    assert (format.name, format.clock, format.sign) == ("my", TimeFormat.ISO, format.step)
    assert (format.rate.scope, format.rate.kind) == (Scope.GLOBAL, Kind.INSTANT)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[1, 2]", "the format must be a mapping"),
        ("step: [", "my.yaml:1: not valid YAML"),
        ("step: x\nname: !!bool maybe", "my.yaml:2: 'maybe' is no bool"),
        ("step: 'loss (?P<loss>.)'\nclock: [iso]", "'clock' is ['iso']; known are"),
        ("[" * 3000, "my.yaml:1: the values are nested deeper"),
        ("step: '(?P<loss>x{99999999999})'", "'step' is no regular expression"),
        ("name: x", "'step' is missing"),
        ("step: '('", "'step' is no regular expression"),
        ("step: 'loss'", "no named group"),
        ("step: '(?P<speed>x)'", "a group 'speed'; known are"),
        ("step: '(?P<loss>x)'\nstepp: x", "unknown key 'stepp'"),
        ("step: '(?P<loss>x)'\nclock: sundial", "'clock' is 'sundial'; known are"),
        ("step: '(?P<loss>x)'\nrate: {scope: all}", "'scope' is 'all'; known are global, rank"),
        ("step: '(?P<loss>x)'\nrate: fast", "'rate' must be a mapping"),
        ("step: '(?P<loss>x)'\nsteps_a_line: 0", "a whole number from 1 up"),
        ("step: '(?P<loss>x)'\nsettings: {batch: 3}", "unknown key 'batch' in 'settings'"),
        ("step: '(?P<loss>x)'\nsettings: {world_size: many}", "'world_size' must be a whole number"),
        ("step: 5", "'step' must be text"),
        ("step: ['(?P<loss>x)', 5]", "'step' must be text"),
        ("step: '(?P<loss>{FLOAT})'", "'step' names a part {FLOAT} that is nowhere"),
        ("step: '(?P<loss>x)'\nreplace: {'(': ''}", "'(' is no regular expression"),
        ("step: '(?P<loss>x)'\nrewrite: os.system", "'rewrite' is 'os.system', no function of a module"),
        ("step: '(?P<loss>x)'\nsettings: {nodes: {pattern: x}}", "'nodes' needs a group (?P<value>…)"),
        ("step: '(?P<loss>x)'\nsettings: {nodes: {pattern: x, as: int}}", "unknown key 'as' in 'nodes'"),
        ("step: '(?P<loss>x)'\nsettings: {nodes: {pattern: x, convert: y}}", "'convert' is 'y'; known are"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_a_sentence(written, text, sentence):
    with pytest.raises(UserError) as refused:
        custom_format(written(text))
    assert sentence in str(refused.value)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("[!_]*.yaml")), ids=lambda path: path.name)
def test_each_of_our_own_files_passes_the_checks_of_a_users(path):
    checked, ours = custom_format(path), our_format(path.name.removesuffix(".yaml"))
    assert (checked.name, checked.patterns, checked.rate) == (ours.name, ours.patterns, ours.rate)
    assert ours.sign.pattern and "sign" in ours.patterns


def test_patterns_are_of_parts_and_settings_have_alternatives(written, tmp_path):
    log = tmp_path / "train.log"
    log.write_text("gpus: 0,1,2\nloss-scale 8\n" + "".join(f"it {n}: 1,0{n} toks\n" for n in range(10, 60)))
    text = r"""
parts: {COUNT: '(?P<value>[\d,]+)'}
step: ['it (?P<step>\d+): ', '(?P<rate>{NUMBER}) toks']
replace: {'{THOUSANDS}': ''}
settings:
  world_size: ['world {COUNT}', {pattern: 'gpus: {COUNT}', convert: count}]
  precision: {pattern: loss-scale, means: amp}
"""
    (read,) = parsed_logs([str(log)], custom_format(written(text)))
    (run,) = read.runs
    assert run.settings == {"world_size": 3, "precision": "amp"}
    assert run.steps["rate"][0] == 1010


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        custom_format(tmp_path / "none.yaml")
