"""The words of `trainmark bisect`, in English and Chinese side by side."""

from __future__ import annotations

from trainmark.report.format.words import LANGUAGES, Lang, Sentences

BISECT_WORDS: dict[str, tuple[str, str]] = {
    "title": ("Bisection of {subject}: {case}", "二分查找 {subject}：{case}"),
    "settings": ("settings", "设置"),
    "no_change": (
        "There is nothing to bisect: {whole}, a difference below {matters}.",
        "无需查找：{whole}，差异小于 {matters}。",
    ),
    "undecided": (
        "Good and bad were not told apart after {pairs}: {whole}.",
        "经过 {pairs}仍无法区分好、坏两端：{whole}。",
    ),
    "whole": ("{second} is {ratio} of {first}", "{second} 的吞吐量是 {first} 的 {ratio}"),
    "unconfirmed": (
        "The search ended at {names}, but beside {first} it shows {ratio}: not confirmed. There may be"
        " several changes, or one that comes and goes.",
        "查找止于 {names}，但它与 {first} 并排测量时为 {ratio}：未获证实。可能有多处变化，或变化时有时无。",
    ),
    "effect": (
        "throughput is {ratio} of that of {first}",
        "吞吐量是 {first} 的 {ratio}",
    ),
    "narrowed": (
        "The change lies in one of {names}; what lies between them was skipped: {effect}.",
        "变化在 {names} 之一；其间的各项被跳过：{effect}。",
    ),
    "together": ("{names} make the change together: {effect}.", "{names} 共同造成变化：{effect}。"),
    "found_versions": ("The culprit is the version {names}: {effect}.", "原因是版本 {names}：{effect}。"),
    "found_commits": ("The culprit is the commit {names}: {effect}.", "原因是提交 {names}：{effect}。"),
    "found_settings": (
        "The culprit is the difference {names}: {effect}.",
        "原因是差异项 {names}：{effect}。",
    ),
    "good_side": ("the good side", "好的一端"),
    "bad_side": ("the bad side", "坏的一端"),
    "part": (
        "It makes {share} of the whole change ({whole}): look for another one on either side of it.",
        "它占整个变化的 {share}（{whole}）：请在其两侧继续查找另一处变化。",
    ),
    "all": ("The whole change: {whole}.", "整个变化：{whole}。"),
    "no_preparation": ("no preparation", "无准备时间"),
    "preparation": (
        "{time} of installs, checkouts and set-up",
        "安装、检出与准备用时 {time}",
    ),
    "cost": (
        "Cost: {trials} in {time}, {preparation}; {steps}.",
        "开销：{trials}，用时 {time}，{preparation}；{steps}。",
    ),
    "skipped_steps": ("{steps}, {skipped} of them skipped", "{steps}（其中跳过 {skipped} 步）"),
    "method": (
        "Each step runs in turns with {first} until a sequential test is certain; the wrong half is taken in"
        " at most {error} of bisections. Ratios are of throughput ({unit}/s), their intervals hold at every"
        " look.",
        "每一步都与 {first} 交替运行，直到序贯检验得出结论；至多 {error} 的二分查找会选错一半。"
        "比值为吞吐量（{unit}/s）之比，其区间在每次查看时都成立。",
    ),
    "tried_versions": ("{tried} of {count} versions were tried.", "共 {count} 个版本，试了 {tried} 个。"),
    "tried_commits": ("{tried} of {count} commits were tried.", "共 {count} 个提交，试了 {tried} 个。"),
    "pair": ("1 pair", "1 对试验"),
    "pairs": ("{count} pairs", "{count} 对试验"),
    "trial": ("1 trial", "1 次试验"),
    "trials": ("{count} trials", "{count} 次试验"),
    "step": ("1 step", "1 步"),
    "steps": ("{count} steps", "{count} 步"),
    "step_column": ("step", "步"),
    "tried_column": ("tried", "所试"),
    "is_column": ("is", "判定"),
    "ratio_column": ("ratio", "比值"),
    "interval_column": ("{confidence} interval", "{confidence} 区间"),
    "pairs_column": ("pairs", "对数"),
    "trials_column": ("trials", "试验数"),
    "time_column": ("time", "用时"),
    "why_column": ("why", "说明"),
    "good": ("good", "好"),
    "bad": ("bad", "坏"),
    "skipped": ("skipped", "跳过"),
    "reference": ("reference", "基准"),
    "culprit": ("culprit", "原因"),
    "beside": ("beside {first}", "与 {first} 并排"),
    "as_in_suite": ("(as in the suite)", "（同测试套件）"),
    "unset": ("(not set)", "（未设置）"),
    "chart": ("Throughput beside the good side", "与好的一端相比的吞吐量"),
    "chart_note": (
        "Throughput of what was tried divided by that of the good side in the same pairs, with its"
        " {confidence} interval, from good (top) to bad.",
        "所试各项的吞吐量除以同一对试验中好的一端的吞吐量，附 {confidence} 区间；自上而下由好到坏。",
    ),
    "chart_axis": ("throughput ÷ good", "吞吐量 ÷ 好的一端"),
    "steps_title": ("Steps", "步骤"),
    "notes_title": ("Notes", "说明"),
}

# What the runner has stored of a step or a culprit, as it was written.
REASONS: Sentences = (
    ("undecided after {pairs} pairs", "{pairs} 对试验之后仍无定论"),
    (
        "it does not install: the package index has no wheel of {what} for this Python",
        "无法安装：软件包索引中没有适用于此 Python 的 {what} 的 wheel 包",
    ),
    ("it does not install: {reason}", "无法安装：{reason}"),
    ("it cannot be checked out: {reason}", "无法检出：{reason}"),
    ("it has no folder {folder}", "其中没有文件夹 {folder}"),
    ("its set-up failed: {reason}", "准备命令失败：{reason}"),
    ("the suite refuses it: {reason}", "测试套件不接受：{reason}"),
    ("it is not planned on this machine", "无法在本机上运行"),
    ("{failed} of {trials} trials failed ({reason})", "{trials} 次试验中有 {failed} 次失败（{reason}）"),
    ("Installed with it in another version: {packages}.", "随之安装的其他版本：{packages}。"),
    (
        "The culprits may be fewer: not judged were {subsets}.",
        "真正的原因可能更少：未能判定的有 {subsets}。",
    ),
)


def bisect_words(lang: Lang) -> dict[str, str]:
    """The words of one language by their name."""
    column = LANGUAGES.index(lang)
    return {name: pair[column] for name, pair in BISECT_WORDS.items()}
