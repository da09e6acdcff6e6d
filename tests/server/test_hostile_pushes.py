"""Hostile pushes and requests: refused in one sentence, or inert; the server goes on."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import time
from dataclasses import replace
from urllib.parse import quote

import pytest
from forged_packs import forged, members, repacked, with_link

from trainmark.base.errors import UserError
from trainmark.server.access.tokens import Role
from trainmark.server.api.operations import OPERATIONS
from trainmark.store.manifest import MANIFEST, Scrubbed, decode_manifest, encode_manifest

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>'\"; DROP TABLE runs; --\u202e\x00"
ATTACKS = (
    "' OR '1'='1",
    '"; DROP TABLE runs; --',
    "1; DELETE FROM tokens",
    "0 UNION SELECT hash FROM tokens",
    "%00",
    "../../../etc/passwd",
    "<script>alert(1)</script>",
    "\ud7ff\U0001f4a9" * 50,
    "9" * 400,
    "nan",
    "-1",
)


def counts(server) -> tuple[int, int]:
    totals = server.request("/api/v1/overview", server.tokens[Role.ADMIN]).json
    return totals["runs"], totals["results"]


def refused(server, data: bytes, status: int = 422) -> str:
    before = counts(server)
    answer = server.request("/api/v1/packs", server.tokens[Role.PUSH], data)
    assert answer.status == status, answer.body
    assert counts(server) == before
    assert list(server.settings.incoming.iterdir()) == []
    sentence = answer.json["error"]
    assert str(server.settings.data) not in sentence
    return sentence


@pytest.fixture(scope="module")
def genuine(make_pack):
    return make_pack(name="genuine", host="genuine")


def test_a_faster_figure_than_the_events_carry_is_refused_and_named(server, genuine, tmp_path):
    def faster(record):
        record["figure"]["throughput"] *= 1.01

    sentence = refused(server, forged(genuine, tmp_path / "forged", faster, manifest_too=True).read_bytes())
    assert "figure.json" in sentence and "throughput" in sentence


def test_a_doubt_that_was_removed_is_refused(server, genuine, tmp_path):
    def certain(record):
        record["figure"]["doubts"] = []
        record["figure"]["settling_steps"] = 3

    assert "figure" in refused(
        server, forged(genuine, tmp_path / "forged", certain, manifest_too=False).read_bytes()
    )


@pytest.mark.parametrize(
    ("key", "started", "place"),
    [
        ({"nodes": -1}, None, "key.nodes"),
        ({"batch_per_device": 0}, None, "key.batch_per_device"),
        ({"device": "NVIDIA H200"}, None, "key.device"),
        ({}, 4e9, "is 2096-10-02"),
    ],
)
def test_what_cannot_be_is_refused_though_all_files_agree_on_it(
    sqlite_server, make_pack, tmp_path, monkeypatch, key, started, place
):
    """A run that is made of it: the packer itself refuses, so that it is not asked here."""
    from dataclasses import replace as changed

    from benchmarks.serving import packs

    from trainmark.store import archive, verify

    made = packs.MadeRun(name="cannot", host=place)
    made = changed(made, key=changed(made.key, **key))
    if started is not None:
        made = changed(made, day=(started - packs.CREATED) / packs.DAY)
    with pytest.raises(UserError, match=re.escape(place)):
        packs.packed(tmp_path, made)
    for name in ("impossible_counts", "impossible_time", "foreign_device"):
        monkeypatch.setattr(verify, name, lambda *_: ())
    file = archive.pack(packs.write_run(tmp_path / "run", made), tmp_path / "forged.trainmark").path
    assert place in str(refused_answer(sqlite_server, file.read_bytes()))


def refused_answer(server, data: bytes) -> list[str]:
    answer = server.request("/api/v1/packs", server.tokens[Role.PUSH], data)
    assert answer.status == 422, answer.body
    return answer.json["differences"]


def test_another_trial_under_a_stored_uuid_is_refused(sqlite_server, make_pack, tmp_path):
    """Two files of one run: the second has other events for the same trial."""
    from benchmarks.serving.packs import MadeRun, write_run

    from trainmark.store.archive import pack
    from trainmark.store.run import RunFolder

    made = MadeRun(name="twice", host="twice")
    assert (
        sqlite_server.push(make_pack(name="twice", host="twice"), sqlite_server.tokens[Role.PUSH]).status
        == 201
    )
    folder = write_run(tmp_path / "run", made).path
    (folder / "trials" / "softmax-b8" / "01" / "samples.jsonl").write_text("")
    file = pack(RunFolder(folder), tmp_path / "second.trainmark").path
    assert "other contents" in refused(sqlite_server, file.read_bytes(), 409)


@pytest.mark.parametrize("name", ["../../etc/cron.d/x", "/etc/passwd", "trials/../../x", "code/evil.py"])
def test_a_member_that_leads_elsewhere_is_refused(sqlite_server, genuine, tmp_path, name):
    contents = {**members(genuine), name: b"evil"}
    assert "no file" in refused(sqlite_server, repacked(tmp_path / "file", contents).read_bytes())


def test_a_link_is_refused(sqlite_server, genuine, tmp_path):
    contents = members(genuine)
    del contents["environment.json"]
    file = with_link(tmp_path / "file", contents)
    assert "symbolic link" in refused(sqlite_server, file.read_bytes())


def test_a_bomb_is_refused_before_it_fills_anything(sqlite_server, genuine):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        info = tarfile.TarInfo("manifest.json")
        info.size = 60 << 20
        archive.addfile(info, io.BytesIO(bytes(info.size)))
    before = sqlite_server.memory_mb()
    refused(sqlite_server, gzip.compress(out.getvalue()))
    assert sqlite_server.memory_mb() - before < 50


@pytest.mark.parametrize("data", [b"", b"\x1f\x8b", b"PK\x03\x04", gzip.compress(b"x" * 4096, mtime=0)])
def test_what_is_no_packed_run_is_refused(sqlite_server, data):
    refused(sqlite_server, data)


def test_a_file_that_is_cut_short_is_refused(sqlite_server, genuine):
    data = genuine.read_bytes()
    refused(sqlite_server, data[: len(data) // 2])


def test_a_file_above_the_limit_is_refused_before_it_is_read(sqlite_server):
    limit = sqlite_server.settings.largest_pack_bytes
    import http.client
    from urllib.parse import urlsplit

    connection = http.client.HTTPConnection(urlsplit(sqlite_server.url).netloc, timeout=30)
    connection.putrequest("POST", "/api/v1/packs")
    connection.putheader("Authorization", f"Bearer {sqlite_server.tokens[Role.PUSH]}")
    connection.putheader("Content-Length", str(limit + 1))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


@pytest.fixture(scope="module")
def scripted(server, make_pack):
    """A run with a script, SQL and control characters in every text that a user can write."""
    file = make_pack(name="scripted", host="scripted", suite="scripted", text=SCRIPT)
    answer = server.push(file, server.tokens[Role.PUSH])
    assert answer.status == 201, answer.body
    return answer.json["run"]


def test_scripts_in_every_text_field_are_stored_as_text_and_never_as_a_page(server, scripted):
    answer = server.request(f"/api/v1/runs/{scripted}", server.tokens[Role.READ])
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    detail = answer.json
    assert "<script>alert(1)</script>" in detail["run"]["name"]
    assert "\0" not in answer.body.decode() and "\u202e" not in detail["run"]["name"]


def test_no_page_has_the_script_of_a_pushed_text(server, scripted):
    run = server.request(f"/api/v1/runs/{scripted}", server.tokens[Role.READ]).json
    case, machine = run["results"][0]["case_id"], run["run"]["machine_id"]
    paths = (
        "/",
        f"/runs/{scripted}",
        f"/cases/{case}",
        f"/machines/{machine}",
        "/machines",
        "/cases",
        "/runs",
        "/leaderboard",
        f"/search?q={quote('<script>alert(1)</script>')}",
        "/login?next=" + quote('"><script>alert(1)</script>'),
    )
    for path in paths:
        answer = server.request(path, server.tokens[Role.READ])
        assert b"<script>alert" not in answer.body and b"onerror=alert" not in _unescaped(answer.body), path
        assert answer.status in (200, 404), path


@pytest.fixture(scope="module")
def scripted_notes(server, make_pack, tmp_path_factory):
    """A run whose manifest says of what was masked whatever its sender wrote."""
    contents = members(make_pack(name="notes", host="notes"))
    note = Scrubbed(SCRIPT, SCRIPT, 3, (SCRIPT,) * 40)
    manifest = replace(decode_manifest(contents[MANIFEST]), scrubbed=(note,) * 3000)
    file = tmp_path_factory.mktemp("notes") / "file.trainmark"
    answer = server.push(
        repacked(file, {**contents, MANIFEST: encode_manifest(manifest)}), server.tokens[Role.PUSH]
    )
    assert answer.status == 201, answer.body
    return answer.json["run"]


def test_scripts_in_the_list_of_what_was_masked_are_text_and_the_list_is_bounded(server, scripted_notes):
    page = server.request(f"/runs/{scripted_notes}", server.tokens[Role.READ])
    assert b"<dd>9,000 values</dd>" in page.body and b"&lt;script&gt;alert(1)" in page.body
    assert b"<script>alert" not in page.body and b"onerror=alert" not in _unescaped(page.body)
    assert len(page.body) < 250_000
    scrubbed = server.request(f"/api/v1/runs/{scripted_notes}", server.tokens[Role.READ]).json["scrubbed"]
    assert scrubbed["count"] == 9000 and len(scrubbed["notes"]) == 1000
    assert len(scrubbed["notes"][0]["places"]) == 20 and "\u202e" not in scrubbed["notes"][0]["kind"]


@pytest.mark.parametrize("count", [0, -5, 2**40])
def test_a_number_of_masked_values_that_cannot_be_is_refused(sqlite_server, genuine, tmp_path, count):
    contents = members(genuine)
    manifest = replace(decode_manifest(contents[MANIFEST]), scrubbed=(Scrubbed("log", "secret", count, ()),))
    file = repacked(tmp_path / "file", {**contents, MANIFEST: encode_manifest(manifest)})
    assert "cannot be" in refused(sqlite_server, file.read_bytes())


def _unescaped(body: bytes) -> bytes:
    """The body without what is escaped: `&lt;img … onerror=…&gt;` is text."""
    return b"".join(part.rpartition(b"&gt;")[2] if b"&gt;" in part else part for part in body.split(b"&lt;"))


def test_sql_in_every_parameter_is_a_value_or_refused(server):
    before = counts(server)
    for operation in OPERATIONS:
        for parameter in operation.parameters:
            for attack in ATTACKS:
                text = quote(attack, safe="")
                path = operation.path.replace("{id}", "1").replace("{uuid}", "x")
                if parameter.in_path:
                    path = operation.path.replace(f"{{{parameter.name}}}", text)
                else:
                    path += f"?{parameter.name}={text}"
                answer = server.request(f"/api/v1{path}", server.tokens[Role.ADMIN])
                assert answer.status in (200, 400, 404), (path, answer.body)
                assert b"Traceback" not in answer.body and b"sqlalchemy" not in answer.body
    assert counts(server) == before


def test_a_text_parameter_with_sql_matches_nothing(server, scripted):
    for path in (
        "runs?suite=",
        "cases?workload=",
        "cases?framework=",
        "cases?device=",
        "leaderboard?device=",
    ):
        answer = server.request(f"/api/v1/{path}" + quote("' OR '1'='1"), server.tokens[Role.READ])
        assert answer.json == [], path


def test_a_slow_hostile_day_left_no_process_behind(sqlite_server):
    import psutil

    time.sleep(0.5)
    children = psutil.Process(sqlite_server.pid).children(recursive=True)
    names = [" ".join(child.cmdline()) for child in children]
    # The resource tracker and the fork server; no check is left.
    assert len(names) <= 2, names
