"""Help in Chinese: nothing is left in English, nothing of the catalogue is left over, and lines fit."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click
import pytest
import yaml
from rich.cells import cell_len as display_width

from trainmark.cli.chinese import CATALOGUE, ChineseHelp, asks_for_chinese, catalogue
from trainmark.cli.main import trainmark as root
from trainmark.view.terminal import broken

NARROW, WIDE = 50, 1000


class RecordingHelp(ChineseHelp):
    """Notes which texts were asked for."""

    asked: dict[str, None]

    def translated(self, text: str) -> str:
        self.asked[text] = None
        return super().translated(text)


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    yield command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            yield from commands(inner, click.Context(inner, info_name=name, parent=context))


def written(width: int, formatter: type[click.HelpFormatter] = ChineseHelp) -> dict[str, str]:
    """The help of every command."""
    pages = {}
    for command, context in commands(
        root, click.Context(root, info_name="trainmark", **root.context_settings)
    ):
        context.formatter_class, context.terminal_width = formatter, width
        pages[context.command_path] = command.get_help(context)
    return pages


@pytest.fixture(scope="module")
def asked() -> dict[str, None]:
    RecordingHelp.asked = {}
    written(WIDE, RecordingHelp)
    return RecordingHelp.asked


def test_every_text_of_the_help_has_a_chinese_one(asked):
    if lacking := [text for text in asked if not catalogue().get(text)]:
        lines = "\n".join(f'{json.dumps(text, ensure_ascii=False)}: ""' for text in lacking)
        pytest.fail(f"Translate these lines and paste them into {CATALOGUE}:\n{lines}", pytrace=False)


def test_every_text_of_the_catalogue_is_used(asked):
    if unused := [text for text in catalogue() if text not in asked]:
        lines = "\n".join(json.dumps(text, ensure_ascii=False) for text in unused)
        pytest.fail(f"No help has these; delete them from {CATALOGUE}:\n{lines}", pytrace=False)


def test_no_text_is_in_the_catalogue_twice():
    with CATALOGUE.open(encoding="utf-8") as stream:
        keys = [key.value for key, _ in yaml.compose(stream).value]
    assert sorted(keys) == sorted(set(keys))


def test_the_help_of_every_command_fits_into_80_columns_but_for_the_examples():
    for path, page in written(width=78).items():
        above, _, below = page.partition("  示例：\n")
        lines = [*above.splitlines(), *below.partition("选项：\n")[2].splitlines()]
        assert [line for line in lines if display_width(line) > 80] == [], path
        assert len(lines) > 4, path


def test_a_list_of_commands_that_is_cut_in_english_is_whole_in_chinese():
    page = "".join(written(NARROW)["trainmark"].split())
    assert "检查已发表的报告和日志是否自洽。" in page


@pytest.mark.parametrize(
    ("environment", "chinese"),
    [
        ({}, False),
        ({"LANG": "zh_CN.UTF-8"}, True),
        ({"LANG": "zh"}, True),
        ({"LANG": "zh_TW.UTF-8", "LC_MESSAGES": ""}, True),
        ({"LANG": "zha_CN.UTF-8"}, False),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, True),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, False),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "zh_CN.UTF-8", "LC_MESSAGES": "de_DE"}, True),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C.UTF-8"}, False),
        ({"LANG": "en_US.UTF-8", "LANGUAGE": "zh_CN:en"}, True),
        ({"LANG": "zh_CN.UTF-8", "LANGUAGE": "en:zh_CN"}, False),
        ({"LANG": "C", "LANGUAGE": "zh_CN"}, False),
    ],
)
def test_the_language_is_the_one_that_the_locale_asks_for(environment, chinese):
    assert asks_for_chinese(environment) is chinese


def test_the_command_speaks_chinese_only_while_it_is_asked_to(trainmark, monkeypatch):
    english = trainmark("report", "--help").out
    assert "trainmark report [OPTIONS] [RUN]" in english
    monkeypatch.setenv("LANGUAGE", "zh_CN")
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    monkeypatch.setenv("COLUMNS", "80")
    chinese = trainmark("report", "--help").out
    assert chinese.startswith("用法：")
    assert "trainmark report [选项] [RUN]" in chinese
    assert "    trainmark report latest --format json          供脚本使用\n" in chinese
    assert "  --runs DIRECTORY                存放所有运行的目录。  [默认：runs]\n" in chinese
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.delenv("COLUMNS")
    assert trainmark("report", "--help").out == english


def test_what_the_catalogue_lacks_stays_english(monkeypatch):
    texts = {**catalogue(), "Print JSON.": ""}
    monkeypatch.setattr("trainmark.cli.chinese.catalogue", lambda: texts)
    page = written(width=78)["trainmark list"]
    assert "Print JSON." in page
    assert "选项：" in page


def test_english_help_does_not_read_the_catalogue(trainmark, monkeypatch):
    monkeypatch.delattr("trainmark.cli.chinese.catalogue")
    assert trainmark("list", "--help").code == 0


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("一二三四五", ["一二三四", "五"]),
        ("一二三四。", ["一二三", "四。"]),
        ("一二三（四）", ["一二三", "（四）"]),
        ("一 --runs 二", ["一", "--runs", "二"]),
        ("一二三  [默认：1]", ["一二三", "[默认：1]"]),
        ("a word of nine", ["a word", "of nine"]),
    ],
)
def test_lines_are_broken_where_chinese_allows_it(text, lines):
    assert broken(text, 8) == lines
