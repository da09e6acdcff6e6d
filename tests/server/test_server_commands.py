"""The commands: serve, push, tokens, migrate; and trainmark.load of an address."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from benchmarks.serving.packs import MadeRun, write_run

import trainmark as package
from trainmark.server.access.tokens import Role
from trainmark.server.faults import FULL
from trainmark.store.remote import Remote, RemoteError, find_token, run_of


@pytest.fixture
def pusher(sqlite_server, monkeypatch):
    monkeypatch.setenv("TRAINMARK_TOKEN", sqlite_server.tokens[Role.ADMIN])
    monkeypatch.setenv("TRAINMARK_SERVER", sqlite_server.url)
    return sqlite_server


def test_a_run_is_packed_pushed_and_loaded_again(trainmark, pusher, tmp_path):
    made = MadeRun(name="pushed", host="pushed")
    write_run(tmp_path / "runs" / "pushed", made)
    first, second = trainmark("push", "pushed"), trainmark("push", "pushed", "--json")
    assert first.code == 0 and first.out.strip() == f"{pusher.url}/runs/{made.uuid} stored"
    assert json.loads(second.out)["new"] is False
    frame = package.load(f"{pusher.url}/runs/{made.uuid}")
    assert list(frame["throughput"]) == pytest.approx(list(made.rates), rel=0.01)
    assert set(frame["run"]) == {"pushed"}


def test_a_run_that_has_not_ended_is_pushed_where_asked_alone_and_its_rest_replaces_it(
    trainmark, pusher, tmp_path
):
    made = MadeRun(name="going", host="going")
    whole = write_run(tmp_path / "runs" / "going", made)
    last = max(whole.trials.glob("*/*"))
    aside = last.rename(tmp_path / "last")
    whole.mark_running()
    refused = trainmark("push", "going")
    trials = len(made.rates)
    assert refused.code == 2 and f"going has {trials - 1} of its {trials} trials" in refused.err
    assert trainmark("push", "going", "--partial").code == 0
    assert len(package.load(f"{pusher.url}/runs/{made.uuid}")) == trials - 1
    aside.rename(last)
    assert trainmark("push", "going").code == 0
    assert len(package.load(f"{pusher.url}/runs/{made.uuid}")) == trials


def test_all_trials_of_a_server_are_loaded_page_by_page(pusher, monkeypatch):
    from trainmark.store import remote

    rows = Remote(pusher.url, pusher.tokens[Role.ADMIN])
    pages = []
    get = rows.get
    monkeypatch.setattr(
        remote.Remote, "get", lambda self, path, **named: pages.append(path) or get(path, limit=2, **named)
    )
    trials = rows.trials(None)
    assert len(pages) > 1
    assert len({(row["run"], row["case"], row["repeat"], row["started"]) for row in trials}) == len(trials)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--to", "http://bench.example.org"], "would send the token unencrypted; use https"),
        (["--to", "ftp://x"], "is no address of a server"),
        (["--to", "https://user:word@host"], "is no address of a server"),
    ],
)
def test_an_address_that_will_not_do_is_refused_before_anything_is_sent(
    trainmark, pusher, tmp_path, words, sentence
):
    write_run(tmp_path / "runs" / "x", MadeRun(name="x"))
    answer = trainmark("push", "x", *words)
    assert answer.code == 2 and sentence in answer.err


def test_without_a_token_the_push_says_where_to_put_one(trainmark, pusher, monkeypatch):
    monkeypatch.delenv("TRAINMARK_TOKEN")
    answer = trainmark("push", "x")
    assert answer.code == 2 and "set TRAINMARK_TOKEN" in answer.err


def test_a_token_file_that_others_can_read_is_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("TRAINMARK_TOKEN", raising=False)
    file = tmp_path / "token"
    file.write_text("tm_x\n")
    file.chmod(0o644)
    with pytest.raises(RemoteError, match="chmod 600"):
        find_token(file)
    file.chmod(0o600)
    assert find_token(file) == "tm_x"


def test_what_the_server_refuses_is_said_in_its_own_words(
    trainmark, pusher, monkeypatch, make_pack, tmp_path
):
    monkeypatch.setenv("TRAINMARK_TOKEN", pusher.tokens[Role.READ])
    answer = trainmark("push", str(make_pack(name="refused")))
    assert answer.code == 2 and "this needs the role 'push'" in answer.err


def test_a_server_that_is_away_is_tried_again_and_then_named():
    waits = []
    with pytest.raises(RemoteError, match=r"http://127.0.0.1:9 cannot be reached"):
        Remote("http://127.0.0.1:9", None, waits.append).get("/runs")
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0]


def test_an_address_of_a_run_has_its_server_and_uuid():
    assert run_of("https://host/runs/abc") == ("https://host", "abc")
    assert run_of("https://host/api/v1/runs/abc/") == ("https://host", "abc")
    assert run_of("https://host:8300/") == ("https://host:8300", None)


def test_tokens_are_made_listed_and_revoked(trainmark, tmp_path):
    place = ("--data", str(tmp_path / "data"))
    made = trainmark("server", "token", "create", "ci", "--role", "push", "--expires", "90d", *place)
    assert made.code == 0 and made.out.startswith("tm_")
    assert trainmark("server", "token", "create", "ci", "--role", "push", *place).code == 2
    assert trainmark("server", "token", "revoke", "ci", *place).code == 0
    (row,) = json.loads(trainmark("server", "token", "list", "--json", *place).out)
    assert (row["name"], row["role"]) == ("ci", "push") and row["revoked"] and "hash" not in row
    assert "ci" in trainmark("server", "audit", *place).out


def test_a_wrong_span_is_refused(trainmark, tmp_path):
    answer = trainmark(
        "server", "token", "create", "x", "--role", "read", "--expires", "soon", "--data", str(tmp_path)
    )
    assert answer.code == 2 and "--expires takes" in answer.err


def test_migrate_says_from_where_to_where(trainmark, tmp_path):
    place = ("--data", str(tmp_path / "data"))
    assert trainmark("server", "migrate", *place).out == "revision none → 0003\n"
    assert trainmark("server", "migrate", "--to", "0001", *place).out == "revision 0003 → 0001\n"
    assert trainmark("server", "migrate", "--to", "base", *place).out == "revision 0001 → none\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--host", "0.0.0.0"], "would send tokens unencrypted"),
        (["--database", "mysql://x"], "--database takes sqlite:///FILE or postgresql://"),
        (["--tls-cert", "suite.yaml"], "--tls-cert and --tls-key go together"),
    ],
)
def test_a_server_that_would_not_be_safe_does_not_start(trainmark, tmp_path, words, sentence):
    (tmp_path / "suite.yaml").write_text("x")
    answer = trainmark("serve", "--data", str(tmp_path / "data"), *words)
    assert answer.code == 2 and sentence in answer.err


def test_one_folder_has_one_server(trainmark, sqlite_server):
    answer = trainmark("serve", "--data", str(sqlite_server.settings.data), "--port", "0")
    assert answer.code == 2 and "is being served by another trainmark" in answer.err


def test_a_server_with_a_certificate_answers_by_https(tmp_path):
    import ssl
    import urllib.request

    from benchmarks.serving.process import ServerProcess

    outputs = ("-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem"))
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1")
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names, *outputs],
        capture_output=True,
    )
    if made.returncode != 0:
        pytest.skip("openssl makes no certificate here")
    files = ("--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"))
    process = ServerProcess(tmp_path / "data", None, *files)
    process.token("x", Role.READ)
    process.start()
    try:
        context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        assert process.url.startswith("https://")
        with urllib.request.urlopen(f"{process.url}/healthz", context=context, timeout=30) as response:
            assert response.headers["Strict-Transport-Security"]
    finally:
        process.stop()


def test_without_the_servers_packages_the_command_says_what_to_install(tmp_path):
    program = (
        "import sys; sys.modules['starlette'] = None\n"
        "sys.argv = ['trainmark', 'serve', '--data', sys.argv[1]]\n"
        "from trainmark.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 2 and "pip install 'trainmark[server]'" in done.stderr


def test_a_push_to_a_full_disk_is_tried_again_and_then_says_why(make_pack):
    class Full(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps({"error": FULL.sentence}).encode()
            self.send_response(FULL.status)
            self.send_header("Retry-After", "7")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_) -> None:
            pass

    waits: list[float] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Full) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        remote = Remote(f"http://127.0.0.1:{server.server_port}", "tm_x", waits.append)
        with pytest.raises(RemoteError, match="the server's disk is full; try again later"):
            remote.push(make_pack())
        server.shutdown()
    assert waits == [7.0] * 5
