"""`fabric.json`: what was kept is read back, and what is no fabric is refused in one sentence."""

from __future__ import annotations

import json

import pytest
from known_fabrics import fabric

from trainmark.store.files import StoreError
from trainmark.store.measurements import FABRIC, decode_fabric, encode_fabric, load_fabric

PRINTED = {
    "node": "a",
    "program": "all_reduce_perf",
    "sizes": [{"bytes": 8, "seconds": 6.5e-6, "bus_bytes_per_second": 1e6}],
}


def record():
    return encode_fabric(fabric({"a": 2, "b": 1}))


def test_what_is_kept_is_read_back_whole():
    document = {**record(), "nccl_tests": [PRINTED]}
    assert encode_fabric(decode_fabric(json.loads(json.dumps(document)))) == document


def test_a_link_tells_its_ends_and_its_figures():
    inside, between, _ = record()["links"]
    assert (inside["from"], inside["to"], inside["same_node"]) == (0, 1, True)
    assert (between["from_node"], between["to_node"], between["same_node"]) == ("a", "b", False)
    assert between["bytes_per_second"] == pytest.approx(11.6e9, rel=0.1)
    assert between["latency_seconds"] == between["points"][0]["seconds"]
    assert between["latency_low"] < between["latency_seconds"] < between["latency_high"]


def test_an_all_reduce_is_kept_by_size_and_as_a_line():
    document = record()
    assert {(each["ranks"], each["nodes"]) for each in document["allreduce"]} == {(3, 2)}
    (fitted,) = document["allreduce_fit"]
    assert fitted["latency_seconds"] == pytest.approx(1e-4)
    assert fitted["bus_bytes_per_second"] == pytest.approx(5e9 * 4 / 3)


def test_a_verdict_is_kept_with_its_message():
    (verdict,) = encode_fabric(fabric(dict.fromkeys("abcd", 1), {(0, 1): (1.0, 0.5)}))["verdicts"]
    assert (verdict["what"], verdict["names"], verdict["figure"]) == ("link", ("a", "b"), "bandwidth")
    assert verdict["message"].startswith("link a – b has ")


def test_a_run_without_a_fabric_has_none(tmp_path):
    assert load_fabric(tmp_path) is None


def damaged(change):
    document = record()
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "null",
        damaged(lambda document: document.update(schema=2)),
        damaged(lambda document: document.pop("links")),
        damaged(lambda document: document.update(links=7)),
        damaged(lambda document: document["links"][0].update(to=9)),
        damaged(lambda document: document["links"][0].update(points=[])),
        damaged(lambda document: document["links"][0]["points"][0].update(seconds=0)),
        damaged(lambda document: document["links"][0]["points"][0].update(bytes=0)),
        damaged(lambda document: document["links"][0]["points"][0].update(high=float("inf"))),
        damaged(lambda document: document["links"][0]["points"][0].update(bytes=float("inf"))),
        damaged(lambda document: document["allreduce"][0].update(ranks=0)),
        damaged(lambda document: document.update(nccl_tests=[{"node": "a"}])),
    ],
)
def test_a_damaged_file_is_refused_by_its_name(tmp_path, text):
    (tmp_path / FABRIC).write_text(text, encoding="utf-8")
    with pytest.raises(StoreError, match=r"fabric\.json is "):
        load_fabric(tmp_path)
