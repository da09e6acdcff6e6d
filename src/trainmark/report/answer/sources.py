"""How the steps of an untouched program were seen and its samples counted, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.measure.figure import Pauses, Result
from trainmark.report.format.words import Lang, words

# By the English text in the events; the name of a library, a backend or a format behind it stays as it is.
CHINESE = {
    "PyTorch optimizer hook": "PyTorch 优化器钩子",
    "PyTorch backward passes, weights updated by hand": "PyTorch 反向传播（权重由程序自行更新）",
    "Keras fit": "Keras fit",
    "Keras optimizers outside of fit": "在 fit 之外调用的 Keras 优化器",
    "calls of JAX functions that take gradients": "对求梯度的 JAX 函数的调用",
    "lines that match the pattern": "与模式匹配的输出行",
    "the log, read as": "日志，格式为",
    "as given by --samples-per-step": "由 --samples-per-step 给出",
    "counted in the batches of the data loader": "由数据加载器的批次统计",
    "counted in the batches of Keras fit": "由 Keras fit 的批次统计",
    "counted in the batches of tf.data": "由 tf.data 的批次统计",
    "not known; steps are counted": "未知，因此统计步数",
    "evaluation": "评估",
    "checkpoint": "保存检查点",
}


def source_sentences(results: Sequence[Result], lang: Lang = "en") -> tuple[str, ...]:
    """How steps were seen and samples counted, for each way that occurs, and the pauses of each result."""
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
    ) + tuple(_pauses_sentence(result.pauses, lang) for result in results if result.pauses)


def _pauses_sentence(pauses: Sequence[Pauses], lang: Lang) -> str:
    t = words(lang)
    listed = t["list_join"].join(
        t["pause_counted"].format(
            kind=_in(each.kind, lang), count=each.count, seconds=f"{each.seconds:.3g} s"
        )
        for each in pauses
    )
    return t["pauses_left_out"].format(pauses=listed) + t["full_stop"]


def _in(text: str, lang: Lang) -> str:
    if lang == "en":
        return text
    for english, chinese in CHINESE.items():
        if text.startswith(english):
            return chinese + text[len(english) :]
    return text
