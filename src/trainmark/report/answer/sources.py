"""How the steps of an untouched program were seen and its samples counted, in one sentence."""

from __future__ import annotations

from collections.abc import Iterable

from trainmark.measure.figure import Result
from trainmark.report.format.words import Lang, words

# By the English text in the events; the name of a library, a backend or a format behind it stays as it is.
CHINESE = {
    "PyTorch optimizer hook": "PyTorch 优化器钩子",
    "Keras fit": "Keras fit",
    "calls of JAX functions that take gradients": "对求梯度的 JAX 函数的调用",
    "lines that match the pattern": "与模式匹配的输出行",
    "the log, read as": "日志，格式为",
    "as given by --samples-per-step": "由 --samples-per-step 给出",
    "counted in the batches of the data loader": "由数据加载器的批次统计",
    "not known; steps are counted": "未知，因此统计步数",
}


def source_sentences(results: Iterable[Result], lang: Lang = "en") -> tuple[str, ...]:
    """Return `Steps are seen by …; samples are …` for each way that occurs; empty where events name none."""
    t = words(lang)
    ways = dict.fromkeys(
        (result.step_source, result.sample_source) for result in results if result.step_source
    )
    return tuple(
        t["steps_seen"].format(source=_in(step, lang))
        + (t["samples_counted"].format(source=_in(sample, lang)) if sample else "")
        + t["full_stop"]
        for step, sample in ways
        if step
    )


def _in(text: str, lang: Lang) -> str:
    if lang == "en":
        return text
    for english, chinese in CHINESE.items():
        if text.startswith(english):
            return chinese + text[len(english) :]
    return text
