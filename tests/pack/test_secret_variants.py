"""Two thousand made-up secrets in all places of a run: none leaves the machine; ordinary logs stay."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from measured_runs import CASE, measured_run, members
from secret_variants import Variant, homes, variants

from trainmark.base.secrets import scrub, scrub_text
from trainmark.pages.run.page import run_page
from trainmark.pages.run.record import run_json
from trainmark.store.archive import PackedRun, pack
from trainmark.store.files import read_json, write_json
from trainmark.store.manifest import scrubbed_counts
from trainmark.store.report import report_of
from trainmark.store.run import RunFolder
from trainmark.store.scrubbing import HOME, POSSIBLE, SECRET, Scrubber
from trainmark.view import html, markdown

ALL = variants()
PLACES = {
    "log": "trials/{}/01/logs/rank0.log",
    "facts": "trials/{}/01/events/rank0.jsonl",
    "command": "trials/{}/01/trial.json",
    "environment": "environment.json",
    "suite": "suite.yaml",
}
ORDINARY = Path(__file__).with_name("ordinary_log.txt").read_bytes()
LETTERS = 100_000
HOSTILE = (
    "token=", "token: ", "token: 1,", "key='\"", "key: ", "pass:", "name: token value: ", "tokens: [a ",
    "password=\"",
    '"Cookie: "', "://a:b@", "://a:", "--token ", "('token', '", "-eyJ", "sk-", "SG.", "curl -u ",
    "wandb login ",
    "-----BEGIN ", "\\", "\\\"", "/home/", "\\/", "%2Fhome", "1m1m", "\x1b[31m", "token\x1b[31m", "<token>",
    "secret=(",
)  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunFolder:
    """A run whose log, facts, command line, environment and suite hold every variant."""
    folder = tmp_path_factory.mktemp("variants")
    log = "".join(f"step {number}\n{variant.text}\n" for number, variant in enumerate(ALL))
    facts = {f"note{number}": variant.text for number, variant in enumerate(ALL)}
    run = measured_run(folder, rates={CASE: (80.0,)}, facts=facts, log=log)
    comments = "".join(f"# {line}\n" for variant in ALL for line in ("step", *variant.text.split("\n")))
    (run.path / "suite.yaml").write_text((run.path / "suite.yaml").read_text() + comments)
    spec = run.trials / CASE / "01" / "trial.json"
    lines = "\n".join(variant.text for variant in ALL if variant.one_line)
    write_json(spec, {**read_json(spec), "command": lines, "environment": {"NOTE": ALL[0].text}})
    write_json(run.path / "environment.json", {"notes": [{"text": variant.text} for variant in ALL]})
    return run


@pytest.fixture(scope="module")
def packed(run) -> PackedRun:
    return pack(run, run.path.parent / "variants.trainmark")


def left_in(data: bytes, among: list[Variant]) -> list[str]:
    return [variant.text for variant in among if variant.secret.encode() in data]


def test_there_are_a_thousand_different_variants_and_more():
    assert len({variant.text for variant in ALL}) == len(ALL) > 1000
    assert all(variant.secret in variant.text for variant in ALL)


@pytest.mark.parametrize("place", PLACES)
def test_no_secret_is_packed(packed, place):
    assert left_in(members(packed.path)[PLACES[place].format(CASE)], ALL) == []


def test_what_was_masked_is_counted_and_what_is_in_doubt_apart(packed):
    counts = scrubbed_counts(packed.manifest)
    assert packed.verification.verified
    assert counts[SECRET] > 5 * 1000 and 0 < counts[POSSIBLE] < counts[SECRET] / 10


def test_no_secret_is_in_a_report(run):
    report = report_of(run)
    page = run_page(report)
    for text in (run_json(report), markdown.render(page), html.render(page)):
        assert left_in(text.encode(), ALL) == []


def test_arguments_in_lists_are_masked_by_the_words_before_them():
    assert scrub(["x", "--token", "a", "--lr", "0.1"]) == ["x", "--token", "*****", "--lr", "0.1"]
    assert scrub({"argv": ["curl", "-u", "ada:b", "https://x.org"]})["argv"][2] == "ada:*****"
    assert scrub({"secret": 9876543210123456, "token": 3}) == {"secret": "*****", "token": 3}


def test_masked_text_stays_as_it_is_when_it_is_masked_again():
    changed = [v.text for v in ALL if scrub_text(scrub_text(v.text)) != scrub_text(v.text)]
    assert changed == []


def test_homes_of_clusters_and_of_windows_are_masked():
    scrubber = Scrubber(home=Path("/nowhere/x"), environment={})
    for variant in homes():
        clean, notes = scrubber.text("a.log", variant.text.encode())
        assert variant.secret.encode() not in clean, variant.text
        assert [note.kind for note in notes] == [HOME], variant.text


def test_the_logs_of_training_stay_byte_for_byte():
    scrubber = Scrubber(home=Path("/nowhere/x"), environment={})
    for line in ORDINARY.splitlines():
        assert scrubber.text("a.log", line) == (line, [])
    assert scrubber.text("a.log", ORDINARY) == (ORDINARY, [])


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_line_of_any_length_is_masked_in_time_that_grows_with_its_length(unit):
    """Where each place is searched to the line's end, four times the letters take sixteen times as long."""
    scrubber = Scrubber(home=Path("/nowhere/x"), environment={})

    def seconds(letters: int) -> float:
        start = time.process_time()
        scrubber.text("a.log", (unit * (letters // len(unit))).encode())
        return time.process_time() - start

    assert seconds(LETTERS) < 0.5 + 10 * seconds(LETTERS // 4)
