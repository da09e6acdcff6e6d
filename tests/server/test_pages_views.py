"""Every page over a server with made-up runs: what it shows, and what it must not."""

import re
from dataclasses import replace
from functools import cached_property

import pages_client
import pytest
from pages_sample import A100, HOSTILE, MACHINES, MadeCase, MadeMachine, key, sample_app
from sqlalchemy import event

from trainmark.events import Step
from trainmark.server.access.tokens import Role
from trainmark.server.api.openapi import document
from trainmark.server.pages.templating import gravest_first

LARGEST_PAGE_BYTES = 80_000
MOST_QUERIES = 9


class Site:
    """A server in this process and the pages that it has."""

    def __init__(self, folder, machines=MACHINES, days=30):
        self.served = sample_app(folder, machines, days)
        self.client = pages_client.Client(self.served.app, self.served.secrets["admin"])

    def get(self, path, **headers):
        return self.client.get(path, **headers)

    @cached_property
    def runs(self):
        """UUIDs, the newest first."""
        return list(dict.fromkeys(re.findall(r'href="/runs/([0-9a-f-]{36})"', self.get("/runs").text)))

    @cached_property
    def paths(self):
        run, before = self.runs[0], self.runs[20]
        return [
            "/", "/?days=30", "/cases", "/cases?q=jax", "/cases/1", "/cases/1?by=version", "/cases/1?all=1",
            "/runs", f"/runs/{run}", "/compare", f"/compare?run={before}&run={run}&run={self.runs[9]}",
            "/machines", "/machines/1", "/leaderboard", "/published", "/search?q=pytorch", "/login", "/admin",
            "/api",
        ]  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return Site(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def hostile_site(tmp_path_factory):
    case = MadeCase(key("pytorch", "amp", 256, A100), 2475, steps=((12, 0.9),), doubts=(HOSTILE,))
    return Site(tmp_path_factory.mktemp("hostile"), (MadeMachine("gpu", A100, (case,), HOSTILE),), 24)


def test_every_page_is_small_and_has_nothing_that_the_policy_forbids(site):
    for path in site.paths:
        answer = site.get(path)
        assert answer.status_code == 200, path
        assert len(answer.content) < LARGEST_PAGE_BYTES, path
        assert not re.search(r"<style|<script(?! src=)|\sstyle=|\son\w+=|javascript:", answer.text), path
        assert "'unsafe" not in answer.headers["content-security-policy"]


def test_every_page_is_there_in_chinese(site):
    for path in site.paths:
        answer = site.get(path, **{"accept-language": "zh-CN,zh;q=0.9,en;q=0.8"})
        assert answer.status_code == 200, path
        assert '<html lang="zh-Hans">' in answer.text
        assert "排行榜" in answer.text


def test_compiled_templates_that_both_languages_share_have_no_word_of_either(site):
    """Jinja folds a filter of a constant into what it compiles."""
    address = f"/runs/{site.runs[0]}"
    assert "<dt>commit</dt><dd><code>" in site.get(address).text
    assert "<dt>提交</dt><dd><code>" in site.get(address, **{"accept-language": "zh-CN"}).text


def test_the_overview_names_the_regression_of_the_week_with_the_fact_that_changed(site):
    text = site.get("/").text
    slower = text.partition("<h2>Slower</h2>")[2].partition("<h2>")[0]
    assert re.search(r'<span class="delta worse">−3\.\d %</span>', slower)
    assert "2.12.1" in slower
    assert "2.13.0" in slower
    assert '<a class="strong" href="/cases/1">resnet50 pytorch amp b256 1n1g</a>' in slower


def test_a_case_shows_its_change_in_the_chart_and_links_both_sides(site):
    text = site.get("/cases/1").text
    chart = text[text.index('<div class="chart') : text.index("</figure>")]
    assert re.search(r'class="bad fill"><text[^>]*>\s*−3\.\d %', chart)
    assert chart.count('<a href="/runs/') == 30
    first, second = re.search(r"/compare\?run=([0-9a-f-]{36})&amp;run=([0-9a-f-]{36})", text).groups()
    assert "slower" in site.get(f"/compare?run={first}&run={second}").text


def test_a_case_that_drifts_says_so_and_is_drawn_slanted(site):
    """It loses 0.1 % a day for 30 days."""
    (case,) = re.findall(r'<a href="(/cases/\d+)">resnet50 paddle amp', site.get("/cases?q=paddle").text)
    text = site.get(case).text
    lost = re.search(r'<p class="prose">Drift of −(\d\.\d) %.*over 30 results', text)
    assert 2 < float(lost[1]) < 4
    moves = re.search(r'<path class="line"[^>]* d="M\d+ \d+l([^"]*)"', text)[1].split()
    assert all(int(down) > 0 for down in moves[1::2])


def test_a_comparison_of_the_two_sides_has_the_version_that_differs(site):
    own = [run for run in site.runs if "/machines/1" in site.get(f"/runs/{run}").text]
    new, old = own[0], own[10]
    text = site.get(f"/compare?run={old}&run={new}").text
    assert "2.12.1 → 2.13.0" in text
    assert '<span class="mark not_conformant">-</span>' in text and re.search(r"\d slower", text)
    assert "What differs between the environments" in text


def test_what_is_not_conformant_stands_on_the_leaderboard_without_a_rank(site):
    text = site.get("/leaderboard?workload=resnet50").text
    rows = re.findall(r'rank">([^<]*)</td><td class="stuck"><a href="/cases/\d+">(\w+)</a>', text)
    assert rows[:4] == [("1", "jax"), ("2", "pytorch"), ("–", "tensorflow"), ("3", "paddle")]
    assert 'class="mark not_conformant">✗ not conformant' in text


def test_doubts_stand_beside_the_figures_they_are_about(site):
    doubtful = site.get("/cases/4").text
    assert '<span class="doubt is-caution">throttled</span>' in doubtful


def test_a_run_lists_what_was_masked_before_packing_in_a_fold_of_its_page(site):
    address = f"/runs/{site.runs[0]}"
    text = site.get(address).text
    assert "<dt>Masked before packing</dt><dd>8 values</dd>" in text
    fold = text.partition('<details class="fold"><summary>What was masked, and where')[2]
    row = 'trials/x/01/logs/rank0.log</td><td>home path</td><td class="num">4</td><td class="reason">line 7<'
    assert row in fold.partition("</details>")[0]
    chinese = site.get(address, **{"accept-language": "zh-CN"}).text
    assert "<dt>打包前已遮盖</dt><dd>8 处</dd>" in chinese and "<td>主目录路径</td>" in chinese


def test_ours_stand_beside_the_best_comparable_published_row(site):
    text = site.get("/published?workload=resnet50").text
    ours = text[text.index("Our latest results") : text.index("Published rows")]
    assert "resnet50 jax amp b256 1n1g" in ours
    assert re.search(r'<span class="strong">\d+ %</span>', ours)


def test_text_of_users_is_text_on_every_page(hostile_site):
    for path in hostile_site.paths:
        text = hostile_site.get(path).text
        assert "<script>document" not in text, path
        assert "<img" not in text, path
        assert "49" not in re.findall(r"onerror=alert\(1\)&gt;(\S*?)&#39;", text), path


def test_no_page_asks_the_database_once_a_row(site):
    counted = []
    engine = site.served.app.state.engine
    event.listen(engine, "before_cursor_execute", lambda *arguments: counted.append(arguments[2]))
    for path in site.paths:
        counted.clear()
        site.get(f"{path}{'&' if '?' in path else '?'}unseen=1")
        questions = [statement for statement in counted if statement.startswith("SELECT")]
        assert len(questions) <= MOST_QUERIES, (path, questions)


@pytest.mark.parametrize(
    "path",
    [
        "/cases?q=%27%3B%20DROP%20TABLE%20cases%3B--%00%25_&page=-3",
        "/cases?page=99999999999999999999",
        "/?days=99999999999",
        "/cases/99999999999999999999",
        "/machines/9223372036854775807",
        "/runs/%27%20OR%201=1",
        "/compare?run=x&run=%00",
        "/leaderboard?workload=%27&device=%ff",
        "/published?workload=nothing&words=%F0%9F%98%80",
        "/search?q=%25%5C_",
        "/search?q=" + "a%20" * 90,
    ],
)  # fmt: skip
def test_strange_parameters_find_nothing_and_break_nothing(site, path):
    assert site.get(path).status_code in (200, 404)
    assert site.get("/cases/1").status_code == 200


def test_the_page_of_the_api_names_every_operation(site):
    text = site.get("/api").text
    assert all(path in text for path in document()["paths"])


def test_static_files_are_named_by_their_content_and_stay_in_caches(site):
    for address in re.findall(r'"(/static/[^"]+)"', site.get("/").text):
        answer = site.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    assert site.get("/static/site.0000000000000000.css").status_code == 404


def test_a_page_that_is_not_there_is_a_page_and_for_programs_json(site):
    assert "There is no such page." in site.get("/nothing").text
    assert site.get("/nothing").status_code == 404
    assert site.get("/api/v1/nothing").json()["error"]
    assert site.get("/nothing", accept="*/*").json()["error"]


def test_a_method_that_an_address_does_not_take_is_refused_with_those_that_it_takes(site):
    answer = site.client.post("/cases", {})
    assert answer.status_code == 405 and "GET" in answer.headers["allow"]
    assert "This address does not take that method." in answer.text
    api = site.client.post("/api/v1/runs", {}, accept="*/*")
    assert api.json()["error"] and "GET" in api.headers["allow"]
    both = site.client.put("/login").headers["allow"]
    assert {"GET", "POST"} <= set(both.split(", "))


def test_a_fault_of_the_server_is_a_page_in_a_browser_and_json_elsewhere(site, monkeypatch):
    from trainmark.server.pages import templating

    broken = templating.environment("en").from_string("{{ missing.name }}")
    environment = templating.environment("en")
    get_template = environment.get_template
    monkeypatch.setattr(
        environment,
        "get_template",
        lambda name, *more: broken if name == "runs.html.j2" else get_template(name, *more),
    )
    answer = site.get("/runs?page=7")
    assert answer.status_code == 500 and "The server failed; its log says why." in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert site.get("/runs?page=7", accept="application/json").json()["error"]


def test_lists_show_figure_verdict_and_trend(site):
    cells = site.get("/runs").text.partition("nightly-28</a>")[2].partition("</tr>")[0]
    assert re.search(r'<span class="strong">3,\d\d\d\.\d</span> <span class="sub">images/s</span>', cells)
    assert '<a href="/cases/1">resnet50 pytorch amp b256 1n1g</a> <span class="whole">+4 more</span>' in cells
    assert '<span class="doubt is-caution">throttled</span>' in cells
    assert 'class="trendline' in cells
    assert site.get("/runs").text.count("no doubt") > 20
    case = site.get("/cases?q=jax").text.partition("resnet50 jax")[2].partition("</tr>")[0]
    assert "no doubt" in case


def test_a_verdict_is_the_gravest_doubt_with_the_number_of_the_others():
    assert gravest_first(["few-trials", "of-a-later-version", "nan-loss"])[0] == "nan-loss"
    assert gravest_first(["few-trials", "nan-loss", "host-busy"], ["nan-loss"])[0] == "host-busy"


@pytest.mark.parametrize(("trials", "look"), [(1, "caution"), (2, "severe")])
def test_a_doubt_weighs_on_the_pages_what_it_weighs_in_the_report(
    sqlite_server, tmp_path, monkeypatch, trials, look
):
    """Of three trials: what fewer than half of them have does not move their median far."""
    from benchmarks.serving import packs

    made, events_of = packs.MadeRun(name=f"nan-in-{trials}"), packs._events

    def some_without_loss(started, rate, facts, seed):
        lost = rate in made.rates[:trials]
        for each in events_of(started, rate, facts, seed):
            yield replace(each, loss=float("nan")) if lost and isinstance(each, Step) else each

    monkeypatch.setattr(packs, "_events", some_without_loss)
    pushed = sqlite_server.request(
        "/api/v1/packs", sqlite_server.tokens[Role.PUSH], packs.packed(tmp_path, made).read_bytes()
    )
    assert pushed.status == 201, pushed.body
    read = sqlite_server.tokens[Role.READ]
    page = sqlite_server.request(f"/runs/{made.uuid}", read).body.decode()
    case = sqlite_server.request(re.search(r"/cases/[0-9]+", page)[0], read).body.decode()
    for text in (page, case.rpartition(f"{made.name}</a>")[2].partition("</tr>")[0]):
        assert f'<span class="doubt is-{look}">nan-loss</span>' in text
    row = sqlite_server.request("/runs", read).body.decode().partition(f"{made.name}</a>")[2]
    assert f"is-{look}" in row.partition("</tr>")[0]
