"""The words of `trainmark watch`, in English and Chinese side by side."""

from __future__ import annotations

from trainmark.measure.ab import ABVerdict
from trainmark.report.format.words import LANGUAGES, Lang, Sentences

WATCH_WORDS: dict[str, tuple[str, str]] = {
    "no_change": ("no change of level is suspected in these runs.", "这些运行中没有疑似的水平变化。"),
    ABVerdict.SLOWER.value: (
        "{case} is slower by more than {share}: {size}, {after} against {before}, {certainty}.",
        "{case} 变慢超过 {share}：{size}（{after} 相对 {before}），{certainty}。",
    ),
    ABVerdict.FASTER.value: (
        "{case} is faster by more than {share}: {size}, {after} against {before}, {certainty}.",
        "{case} 变快超过 {share}：{size}（{after} 相对 {before}），{certainty}。",
    ),
    ABVerdict.SAME.value: (
        "{case} differs by less than {share}: {size}, {after} against {before}, {certainty}.",
        "{case} 的差异小于 {share}：{size}（{after} 相对 {before}），{certainty}。",
    ),
    ABVerdict.UNDECIDED.value: (
        "{case} is undecided: {reason} ({size}, {after} against {before}).",
        "{case} 尚无定论：{reason}（{size}，{after} 相对 {before}）。",
    ),
    "certainty_one": (
        "after 1 pair, wrong with probability ≤ {error}",
        "经 1 对试验，出错概率 ≤ {error}",
    ),
    "certainty": (
        "after {pairs} pairs, wrong with probability ≤ {error}",
        "经 {pairs} 对试验，出错概率 ≤ {error}",
    ),
    "no_pair": ("no pair was measured", "没有测得任何一对试验"),
    "no_interval": ("no interval yet", "尚无区间"),
    "medians": ("medians: {before} → {after} {unit}", "中位数：{before} → {after} {unit}"),
    "differs": ("differs: {difference}", "不同：{difference}"),
    "not_put_back": ("not put back: {difference}", "未能恢复：{difference}"),
    "folder": ("folder: {folder}", "文件夹：{folder}"),
    "not_recorded": ("not recorded", "未记录"),
}

# Why nothing is certain, as the runner writes it.
REASONS: Sentences = (
    (
        "the two runs differ in nothing that can be put back here, so that measuring them again would compare"
        " this machine with itself",
        "两次运行的不同之处在这里都无法恢复，重新测量只会是本机与自身相比",
    ),
    (
        "{failed} of {pairs} pairs failed, the last in {run}: {failure}",
        "{pairs} 对试验中有 {failed} 对失败，最后一次是 {run}：{failure}",
    ),
    ("1 pair was not enough", "1 对试验不够"),
    ("{pairs} pairs were not enough", "{pairs} 对试验不够"),
    ("{seconds} s of trials were not enough", "{seconds} s 的试验时间不够"),
)


def watch_words(lang: Lang) -> dict[str, str]:
    """The words of one language by their name."""
    column = LANGUAGES.index(lang)
    return {name: pair[column] for name, pair in WATCH_WORDS.items()}
