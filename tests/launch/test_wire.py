"""Messages between home and a node: whatever is said arrives, however the bytes are cut."""

import contextlib
import os

import pytest
from hypothesis import given
from hypothesis import strategies as some

from trainmark.launch.agent import wire as module
from trainmark.launch.agent.wire import ClosedError, Wire

values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(), inner, max_size=3),
    max_leaves=8,
)
messages = some.dictionaries(some.text().filter(lambda key: key != "bytes"), values, max_size=4)
conversations = some.lists(some.tuples(messages, some.binary(max_size=300)), max_size=6)


@contextlib.contextmanager
def line():
    """A wire that hears what is written into a pipe, and a wire that says into another."""
    pipes = [os.pipe(), os.pipe()]
    (incoming, write), (read, outgoing) = pipes
    try:
        yield Wire(incoming, outgoing), write, read
    finally:
        for end in (incoming, write, read, outgoing):
            with contextlib.suppress(OSError):
                os.close(end)


def encoded(conversation):
    with line() as (wire, _, read):
        for message, payload in conversation:
            wire.send(message, payload)
        assert wire.unsent == 0
        return os.read(read, 1 << 20) if conversation else b""


@given(conversations, some.lists(some.integers(1, 50), min_size=1))
def test_every_message_arrives_whole_however_the_bytes_are_cut(conversation, cuts):
    data, heard = encoded(conversation), []
    with line() as (wire, write, _):
        while data:
            size = cuts[len(data) % len(cuts)]
            os.write(write, data[:size])
            data = data[size:]
            heard += wire.receive()
    plain = [
        ({key: value for key, value in message.items() if key != "bytes"}, body) for message, body in heard
    ]
    assert plain == conversation


def test_the_end_is_told_once_everything_was_taken():
    with line() as (wire, write, _):
        os.write(write, b'{"event": "a"}\n')
        os.close(write)
        assert wire.receive() == [({"event": "a"}, b"")]
        with pytest.raises(ClosedError):
            wire.receive()


def test_nothing_to_read_is_no_end():
    with line() as (wire, _, _):
        assert wire.receive() == []


def test_a_line_without_an_end_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(module, "LONGEST_HEADER", 1000)
    with line() as (wire, write, _), pytest.raises(ClosedError):
        for _ in range(3):
            os.write(write, b"x" * 500)
            wire.receive()


def test_saying_to_one_who_does_not_listen_neither_blocks_nor_fails():
    with line() as (wire, _, read):
        wire.send({"event": "a"}, b"x" * (9 << 20))
        assert wire.clogged and wire.drain(0.1) is False
        os.close(read)
        wire.push()
        assert not wire.unsent
