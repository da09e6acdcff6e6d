"""Pushing: what is stored, stored once, replaced, refused."""

from __future__ import annotations

import statistics
import threading

import pytest

from trainmark.server.access.tokens import Role

RUNS, CHANGED = 18, 10


@pytest.fixture(scope="module")
def history(server, make_pack):
    """Ten runs of 80 samples/s, then eight of 76 with another commit."""
    for number in range(RUNS):
        level, commit = (80.0, "a" * 40) if number < CHANGED else (76.0, "b" * 40)
        rates = tuple(level * (1 + 0.002 * ((number * 7 + trial * 3) % 5 - 2)) for trial in range(2))
        file = make_pack(name=f"night-{number}", day=number, rates=rates, commit=commit, host="history")
        answer = server.push(file, server.tokens[Role.PUSH])
        assert answer.status == 201, answer.body
    return server


@pytest.fixture(scope="module")
def case(history):
    (case,) = [case for case in get(history, "/cases") if case["machine"] == "history"]
    return case


def get(server, path: str):
    answer = server.request(f"/api/v1{path}", server.tokens[Role.READ])
    assert answer.status == 200, answer.body
    return answer.json


def test_the_history_of_a_case_has_every_pushed_result_in_order(history, case):
    points = get(history, f"/cases/{case['id']}/history")["points"]
    assert [point["name"] for point in points] == [f"night-{number}" for number in range(RUNS)]
    assert points[0]["throughput"] == pytest.approx(80.0, rel=0.01)


def test_the_throughput_of_a_point_is_the_median_of_its_trials(history, case):
    points = get(history, f"/cases/{case['id']}/history")["points"]
    medians = [statistics.median(point["values"]) for point in points]
    assert [point["throughput"] for point in points] == pytest.approx(medians, rel=1e-12)


def test_a_point_has_the_facts_that_differ_from_the_point_before(history, case):
    points = get(history, f"/cases/{case['id']}/history")["points"]
    assert points[0]["facts"]["commit"] == "a" * 40
    assert [point["name"] for point in points[1:] if "commit" in point["facts"]] == [f"night-{CHANGED}"]
    assert points[CHANGED]["facts"]["commit"] == "b" * 40


def test_a_lasting_slowdown_is_marked_at_its_first_result_with_the_fact_that_changed(history, case):
    (marked,) = get(history, f"/cases/{case['id']}/history")["changes"]
    assert marked["index"] == CHANGED
    assert marked["change"]["ratio"] == pytest.approx(0.95, abs=0.005)
    assert marked["change"]["facts"][0] == ["commit", "a" * 40, "b" * 40]


def test_the_summary_of_a_case_follows_its_history(case):
    assert (case["results"], case["changes"]) == (RUNS, 1)
    assert case["last_throughput"] == pytest.approx(76.0, rel=0.01)
    assert case["best_throughput"] == pytest.approx(80.0, rel=0.01)
    assert len(case["recent"]) == RUNS


def test_a_run_has_its_results_trials_and_environment(history):
    newest = next(run for run in get(history, "/runs") if run["machine"] == "history")
    detail = get(history, f"/runs/{newest['uuid']}")
    assert len(detail["results"]) == 1 and len(detail["trials"]) == 2
    assert detail["environment"]["host"]["kernel"] == "Linux 6.1.0"
    assert detail["run"]["token"] == "push"


def test_a_machine_shows_its_health_run_by_run(history, case):
    health = get(history, f"/machines/{case['machine_id']}")["health"]
    assert len(health) == RUNS and health[0]["failed"] == 0
    assert health[-1]["of_best"] == pytest.approx(0.95, abs=0.01)


def test_search_finds_runs_by_every_word_and_takes_wildcards_literally(history):
    assert [run["name"] for run in get(history, "/search?q=NIGHT-7")["runs"]] == ["night-7"]
    assert get(history, "/search?q=night%25")["runs"] == []


def test_the_packed_file_can_be_had_again_byte_by_byte(history, make_pack):
    run = next(run for run in get(history, "/runs") if run["machine"] == "history")
    answer = history.request(f"/api/v1/packs/{run['sha256']}", history.tokens[Role.READ])
    assert len(answer.body) == run["bytes"]


def test_the_same_file_pushed_by_twenty_clients_at_once_is_stored_once(server, make_pack):
    file = make_pack(name="same", host="same-host")
    answers = []

    def push() -> None:
        answers.append(server.push(file, server.tokens[Role.PUSH]))

    clients = [threading.Thread(target=push) for _ in range(20)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert sorted(answer.status for answer in answers) == [200] * 19 + [201]
    assert len({answer.json["run"] for answer in answers}) == 1
    assert len(get(server, "/search?q=same")["runs"]) == 1


def test_a_damaged_upload_is_noticed_by_its_digest(sqlite_server, make_pack):
    data = make_pack(name="digest").read_bytes()
    headers = {"X-Content-SHA256": "0" * 64}
    answer = sqlite_server.request("/api/v1/packs", sqlite_server.tokens[Role.PUSH], data, headers)
    assert answer.status == 400 and "damaged on its way" in answer.json["error"]


def test_a_figure_is_what_the_events_say_to_the_last_digit(sqlite_server, make_pack):
    from trainmark.store.verify import verify

    file = make_pack(name="digits", host="digits")
    uuid = sqlite_server.push(file, sqlite_server.tokens[Role.PUSH]).json["run"]
    trials = get(sqlite_server, f"/runs/{uuid}")["trials"]
    assert [trial["throughput"] for trial in trials] == [
        trial.figure.throughput for trial in verify(file).trials if trial.figure
    ]
