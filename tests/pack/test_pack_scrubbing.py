"""Secrets and home paths do not leave the machine: masked in every member, listed without their values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from measured_runs import CASE, measured_run, members

from trainmark.base.secret_patterns import SHAPES, SURE, Likelihood, likelihood_of
from trainmark.store.archive import PackedRun, pack
from trainmark.store.files import read_json, write_json
from trainmark.store.scrubbing import HOME, SECRET, Scrubber

# Made up for this file, each in a shape or under a name that is a secret's.
TOKEN = "hf_" + "a1B2c3D4e5" * 3
BARE = "0123-plain-value-9876"
IN_SUITE = "swordfish-in-the-suite"
VALUES = (TOKEN, BARE, IN_SUITE, "hunter2hunter2", "/home/ada", "/srv/people/grace", "/Users/lin", "/root/")
FORMS = ("{}=swordfish9", "--{} swordfish9", "{}: swordfish9")
LOG = (
    f"loading /home/ada/data/train.bin\nlogin --token {TOKEN}\nusing {BARE} now\napi_key: hunter2hunter2\n"
    f"file:///Users/lin/x and -I/home/ada/include and {IN_SUITE}\nstep 5, tokens: 1234\n"
)


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> PackedRun:
    """A run with secrets and homes in logs, facts, command line, variables, suite and environment."""
    folder = tmp_path_factory.mktemp("secret")
    facts = {"checkpoint": "/srv/people/grace/ckpt", "hub": {"api_token": TOKEN}, "note": f"with {BARE}"}
    run = measured_run(folder, rates={CASE: (80.0, 81.0)}, facts=facts, log=LOG)
    suite = (run.path / "suite.yaml").read_text() + f"environment: {{WANDB_API_KEY: {IN_SUITE}}}\n"
    (run.path / "suite.yaml").write_text(suite)
    spec = run.trials / CASE / "01" / "trial.json"
    plain = read_json(spec)
    plain["command"] = f"WANDB_API_KEY={TOKEN} /home/ada/.venv/bin/python train.py --password hunter2hunter2"
    plain["environment"] = {"PYTHONPATH": "/srv/people/grace/code:/root/lib", "DB_PASSWORD": "hunter2hunter2"}
    write_json(spec, plain)
    write_json(run.path / "environment.json", {"variables": {"HF_TOKEN": TOKEN}, "cwd": "/home/ada/work"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", "/srv/people/grace")
        patch.setenv("SERVICE_TOKEN", BARE)
        return pack(run, folder / "secret.trainmark")


@pytest.mark.parametrize("value", VALUES)
def test_no_member_has_a_secret_or_a_home(packed, value):
    assert [name for name, data in members(packed.path).items() if value.encode() in data] == []


def test_it_still_verifies(packed):
    assert packed.verification.verified
    assert sum(trial.figure is not None for trial in packed.verification.trials) == 2


@pytest.mark.parametrize(
    ("member", "kind", "place"),
    [
        (f"trials/{CASE}/01/trial.json", SECRET, "command"),
        (f"trials/{CASE}/01/trial.json", HOME, "command"),
        (f"trials/{CASE}/01/trial.json", SECRET, "environment.DB_PASSWORD"),
        (f"trials/{CASE}/01/trial.json", HOME, "environment.PYTHONPATH"),
        (f"trials/{CASE}/01/events/rank0.jsonl", SECRET, "line 1, facts.hub.api_token"),
        (f"trials/{CASE}/01/events/rank0.jsonl", SECRET, "line 1, facts.note"),
        (f"trials/{CASE}/01/events/rank0.jsonl", HOME, "line 1, facts.checkpoint"),
        (f"trials/{CASE}/01/logs/rank0.log", HOME, "line 2"),
        (f"trials/{CASE}/01/logs/rank0.log", SECRET, "line 3"),
        (f"trials/{CASE}/01/logs/rank0.log", SECRET, "line 4"),
        (f"trials/{CASE}/01/logs/rank0.log", SECRET, "line 5"),
        ("suite.yaml", SECRET, "line 4"),
        ("environment.json", SECRET, "variables.HF_TOKEN"),
        ("environment.json", HOME, "cwd"),
    ],
)
def test_what_was_masked_is_listed_by_member_kind_and_place(packed, member, kind, place):
    (note,) = (note for note in packed.manifest.scrubbed if (note.member, note.kind) == (member, kind))
    assert place in note.places and note.count >= len(note.places)


def test_steps_and_counts_stay_as_they_were(packed):
    contents = members(packed.path)
    assert b"step 5, tokens: 1234\n" in contents[f"trials/{CASE}/01/logs/rank0.log"]
    line = contents[f"trials/{CASE}/01/events/rank0.jsonl"].splitlines()[0]
    assert json.loads(line)["facts"]["checkpoint"] == "~/ckpt"


@pytest.fixture
def scrubber() -> Scrubber:
    return Scrubber(home=Path("/home/ada"), environment={})


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("/home/ada/x", "~/x"),
        ("A=/home/ada:/home/ada/b", "A=~:~/b"),
        ("/home/adamant/x", "~/x"),
        ("/mnt/home/ada/x", "/mnt~/x"),
        ("/mnt/home/lin/x", "~/x"),
        ("C:\\Users\\lin\\x", "~\\x"),
        ("https://x.org/home/lin/x s3://bucket/home/lin", "https://x.org/home/lin/x s3://bucket/home/lin"),
        ("/usr/share/a/b/c/d/home/lin", "/usr/share/a/b/c/d/home/lin"),
        ("http://home/ada", "http://home/ada"),
        ("/root/x /rootfs /data/root/x", "~/x /rootfs /data/root/x"),
        ("-L/home/lin/lib", "-L~/lib"),
        ("/usr/lib/python3", "/usr/lib/python3"),
    ],
)
def test_homes_are_told_from_other_paths(scrubber, text, clean):
    assert scrubber.text("a.log", text.encode())[0].decode() == clean


def test_a_private_key_leaves_the_numbers_of_lines(scrubber):
    block = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\nBBBB\n-----END OPENSSH PRIVATE KEY-----"
    data, notes = scrubber.text("a.log", f"one\n{block}\nsix /home/ada\n".encode())
    assert b"AAAA" not in data and data.count(b"\n") == 6
    assert [(note.kind, note.places) for note in notes if note.kind == HOME] == [(HOME, ("line 6",))]


def test_bytes_that_are_no_text_stay(scrubber):
    assert scrubber.text("a.log", b"\xff\xfe /home/ada \x80\n")[0] == b"\xff\xfe ~ \x80\n"


def test_what_has_nothing_to_mask_stays_byte_for_byte(scrubber):
    data = b'{"a" :  1.50, "key": "x"}'
    assert scrubber.json("trial.json", data) == (data, [])


def test_only_the_first_places_of_many_are_listed(scrubber):
    _, (note,) = scrubber.text("a.log", b"/home/ada/x\n" * 1000)
    assert (note.count, len(note.places)) == (1000, 20)


@given(
    st.from_regex(SURE, fullmatch=True),
    st.sampled_from(("{}=swordfish9", "--{} swordfish9", "{}: swordfish9")),
)
@settings(max_examples=100)
def test_every_name_of_a_secret_is_known_by_its_hints(name, form):
    """Names are known by a pattern; the hints by which most lines are passed over must not lack one."""
    assume(likelihood_of(name.removesuffix("\n")) is Likelihood.SURE and "\n" not in name)
    assert b"swordfish9" not in Scrubber(environment={}).text("a.log", f"x {form.format(name)} y".encode())[0]


@given(st.sampled_from(SHAPES), st.data())
@settings(max_examples=30)
def test_every_shape_of_a_secret_is_known_by_its_hints(shape, data):
    token = data.draw(st.from_regex(shape.pattern))
    assume("\n" not in token and shape.pattern.search(token))
    assert any(hint in token for hint in shape.hints), shape.name
    clean, notes = Scrubber(environment={}).text("a.log", token.encode("utf-8", "surrogateescape"))
    assert clean.decode("utf-8", "surrogateescape") != token and notes


def test_what_a_trial_ended_with_is_scrubbed_in_its_record(scrubber):
    data = json.dumps({"detail": "rank 0 left with code 1: bad api_key: hunter2hunter2"}).encode()
    clean, (note,) = scrubber.json("trials/a/01/figure.json", data)
    assert b"hunter2" not in clean and note.places == ("detail",)
