"""The Chinese of the line that sets a result against the published ones, and the line in either language."""

from __future__ import annotations

from collections.abc import Mapping

from trainmark.logs.ledger import Standing
from trainmark.logs.ledger.standing import ENGLISH, StandingWords, standing_line
from trainmark.measure.key import Key
from trainmark.pages.facts import KNOWN
from trainmark.report.format.words import Lang
from trainmark.view.catalogue import translated

CHINESE = StandingWords(
    {
        "best": "最佳公开结果：{figure}；本结果为其 {percent} %",
        "none": "最佳公开结果：没有可比的结果（{why}）",
        "theirs": "其设置：{differences}",
        "difference": "{name} {theirs}（此处 {ours}）",
        "unstated": "一方未说明：{names}",
        "errata": "该来源有勘误",
        "ceiling": "单设备最高：{figure}",
        "figure": "{rate}（{source}）",
        "device_figure": "{rate}，取自 {topology} 的单个设备（{source}）",
        "no_device": "设备未知",
        "no_entry": "公开结果集中没有 {device} 上 {precision} 的 {workload}",
        "unknown_precision": "未知精度",
        "join": "；",
        "list_join": "、",
    },
    {
        **{name.replace(" ", "_"): translated(text, "zh") for name, text in KNOWN.items()},
        "accumulate": "梯度累积",
        "batch_per_device": "批量",
        "framework_version": "版本",
        "length": "序列长度",
        "optimizer": "优化器",
        "recompute": "激活重算",
        "sharding": "分片",
    },
)
LANGUAGES: dict[Lang, StandingWords] = {"en": ENGLISH, "zh": CHINESE}


def published_lines(bests: Mapping[Key, Standing | None], lang: Lang) -> dict[Key, str]:
    """Return where each result stands among the published ones; nothing for a user's own program."""
    lines = {key: standing_line(key, best, LANGUAGES[lang]) for key, best in bests.items()}
    return {key: line for key, line in lines.items() if line}
