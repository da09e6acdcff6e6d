"""TensorBoard's files, by a reader of its own and by TensorBoard where it is installed."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from importlib.util import find_spec

import pytest
from exported_runs import exported
from hypothesis import given
from hypothesis import strategies as st

from trainmark.base.wire import framed, masked_crc
from trainmark.inside.wire import varint as written_varint

TAGS = {"throughput", "step_seconds", "loss", "lr", "memory_bytes"}
READ = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
accumulator = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
accumulator.Reload()
tags = accumulator.Tags()["scalars"]
print(json.dumps({tag: [[e.step, e.wall_time, e.value] for e in accumulator.Scalars(tag)] for tag in tags}))
"""


@pytest.fixture
def trial(run, tmp_path):
    return exported(run, "tensorboard", tmp_path / "out") / "pytorch-fp32-b32-1n8g" / "01"


def records(data):
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        assert struct.unpack("<I", data[8:12]) == (masked_crc(data[:8]),)
        body, check = data[12 : 12 + length], data[12 + length : 16 + length]
        assert struct.unpack("<I", check) == (masked_crc(body),)
        yield body
        data = data[16 + length :]


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """Protocol buffers without a schema: field number and raw value."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            if size is None:
                size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def scalars(event):
    event_fields = dict(fields(event))
    for _, value in fields(event_fields[5]):
        parts = dict(fields(value))
        (number,) = struct.unpack("<f", parts[2])
        yield parts[1].decode(), event_fields.get(2, 0), struct.unpack("<d", event_fields[1])[0], number


def unmasked_crc(data):
    rotated = (masked_crc(data) - 0xA282EAD8) & 0xFFFFFFFF
    return (rotated >> 17 | rotated << 15) & 0xFFFFFFFF


def test_a_masked_checksum_is_that_of_leveldb():
    assert masked_crc(b"123456789") == 0xC78AB0E5


def test_the_checksum_has_the_published_values():
    # RFC 3720, appendix B.4, and the catalogue's check value.
    assert unmasked_crc(bytes(32)) == 0x8A9136AA
    assert unmasked_crc(b"\xff" * 32) == 0x62A8AB43
    assert unmasked_crc(b"123456789") == 0xE3069283


@given(st.binary(max_size=300))
def test_a_record_can_be_read_back(data):
    assert list(records(framed(data))) == [data]


@given(st.integers(0, 2**63 - 1))
def test_a_varint_can_be_read_back(value):
    assert varint(written_varint(value), 0)[0] == value


def test_the_file_begins_with_its_version_and_has_every_scalar_of_every_step(trial):
    (path,) = trial.iterdir()
    first, *rest = records(path.read_bytes())
    assert dict(fields(first))[3] == b"brain.Event:2"
    step_scalars = [scalar for event in rest for scalar in scalars(event)]
    assert {(tag, step) for tag, step, _, _ in step_scalars} == {
        (tag, step) for tag in TAGS for step in range(120)
    }


def test_the_scalars_are_those_of_all_ranks(trial):
    (path,) = trial.iterdir()
    _, *rest = records(path.read_bytes())
    last = {tag: value for tag, _, _, value in scalars(rest[-1])}
    assert last["throughput"] == pytest.approx(8 * 32 / last["step_seconds"], rel=1e-6)
    assert last["loss"] == pytest.approx(7 - 1.19)
    assert last["memory_bytes"] == float((1 << 30) + 0)


@pytest.mark.skipif(find_spec("tensorboard") is None, reason="pip install -r requirements/test.txt")
def test_tensorboard_itself_reads_the_scalars(trial):
    done = subprocess.run([sys.executable, "-c", READ, str(trial)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    series = json.loads(done.stdout)
    assert set(series) == TAGS
    assert [step for step, _, _ in series["loss"]] == list(range(120))
