"""The words of `trainmark history`, in English and Chinese side by side."""

from __future__ import annotations

from trainmark.report.format.words import LANGUAGES, Lang

HISTORY_WORDS: dict[str, tuple[str, str]] = {
    "title": ("Results over time", "历史结果"),
    "summary": (
        "Results: {results}. Cases: {cases}. Runs: {runs}.",
        "共 {results} 个结果，来自 {runs} 次运行的 {cases} 个用例。",
    ),
    "no_changes": ("No change of level.", "没有检测到水平变化。"),
    "cannot_tell": (
        "Cases with too few results to tell: {count}.",
        "结果太少而无从判断的用例：{count} 个。",
    ),
    "no_lasting_change": (
        "No lasting change: the results vary by no more than their trials and days explain",
        "没有持续性变化：结果的波动可由试验间与日间差异解释",
    ),
    "too_few": (
        "{count} results: too few for a change of level ({needed} are needed)",
        "{count} 个结果：太少，无法判断水平变化（至少需要 {needed} 个）",
    ),
    "too_few_one": (
        "1 result: too few for a change of level ({needed} are needed)",
        "1 个结果：太少，无法判断水平变化（至少需要 {needed} 个）",
    ),
    "last_differs": (
        "{start}; the last differs from the one before by {last}.",
        "{start}；最后一个与前一个相差 {last}。",
    ),
    "last_certain": ("{ratio}, certain", "{ratio}（确定）"),
    "last_doubtful": ("{ratio}, but not both are to be relied on", "{ratio}（但有结果不可信）"),
    "last_open": ("{ratio}, not certain", "{ratio}（不确定）"),
    "full_stop": (".", "。"),
    "no_change_unreliable": (
        "{start}, but half of them or more are not to be relied on.",
        "{start}；但其中至少一半不可信。",
    ),
    "unreliable": ("not to be relied on", "不可信"),
    "change_unreliable": (
        "Not certain: half of the results on a side, or more, are not to be relied on.",
        "不能确定：一侧至少有一半的结果不可信。",
    ),
    "unreliable_count": ("Not to be relied on: {count} of them.", "其中不可信：{count} 处。"),
    "changes_count": (
        "Changes: {slower} slower, {faster} faster.",
        "变化：变慢 {slower} 处，变快 {faster} 处。",
    ),
    "drifts_count": (
        "Drifts: {slower} slower, {faster} faster.",
        "缓慢漂移：变慢 {slower} 处，变快 {faster} 处。",
    ),
    "left_out": (
        "Left out: {count} results that have no {fact} recorded.",
        "略去 {count} 个没有记录{fact}的结果。",
    ),
    "by_date": ("date", "日期"),
    "by_commit": ("commit", "提交"),
    "by_version": ("framework version", "框架版本"),
    "by_driver": ("driver", "驱动版本"),
    "case": ("case", "用例"),
    "results": ("results", "结果数"),
    "latest": ("latest", "最新"),
    "interval": ("interval", "区间"),
    "history": ("history", "历史"),
    "last_change": ("last change", "最近一次变化"),
    "changed_fact": ("with it changed", "同时改变的事实"),
    "time": ("time (UTC)", "时间 (UTC)"),
    "date": ("date", "日期"),
    "run": ("run", "运行"),
    "throughput": ("throughput", "吞吐量"),
    "trials": ("trials", "试验数"),
    "change": ("change", "变化"),
    "differs": ("differs from the one before", "与前一个结果的不同"),
    "fact": ("fact", "事实"),
    "before": ("before", "之前"),
    "after": ("after", "之后"),
    "fit": ("fit", "吻合度"),
    "doubts": ("doubts", "存疑"),
    "slower": ("slower", "变慢"),
    "faster": ("faster", "变快"),
    "changes": ("Changes", "变化"),
    "cases": ("Cases", "用例"),
    "cases_note": (
        "Latest result of each case: the median over its trials, with the interval.",
        "各用例的最新结果：各次试验的中位数及其区间。",
    ),
    "all_results": ("All results", "全部结果"),
    "change_sentence": (
        "{ratio} {bounds} from {date} on ({run}).",
        "自 {date}（{run}）起 {ratio} {bounds}。",
    ),
    "drift_sentence": (
        "Drift of {ratio} {bounds} over {count} results, from {first} ({first_run}) to {last} ({last_run})."
        " Probability without a drift: {probability}.",
        "自 {first}（{first_run}）至 {last}（{last_run}）的 {count} 个结果缓慢漂移 {ratio} {bounds}。"
        "若无漂移，出现如此趋势的概率：{probability}。",
    ),
    "over_results": ("over {count} results", "（{count} 个结果）"),
    "probability": (
        "Probability without a change: {probability}. Results at the new level: {count}.",
        "若无变化，出现如此差异的概率：{probability}。新水平上已有 {count} 个结果。",
    ),
    "no_fact": (
        "No recorded fact changed with it.",
        "没有任何已记录的事实与之同时改变。",
    ),
    "not_recorded": ("not recorded", "未记录"),
    "more_facts": ("and {count} more", "另有 {count} 项"),
    "report": ("Report", "报告"),
    "no_report": ("no report written", "尚无报告"),
    "first_result": ("The first result.", "第一个结果。"),
    "same_environment": (
        "Nothing recorded differs from the result before.",
        "与前一个结果相比，已记录的事实均无不同。",
    ),
    "environment_difference": ("Environment: difference from the result before", "环境：与前一个结果的差异"),
    "choose": (
        "Choose a point for its run, report and environment difference.",
        "点击一个点，查看其运行、报告与环境差异。",
    ),
    "chart_note": (
        "Median of each result with its interval; dark lines are levels, slanted where they drift;"
        " a dashed line marks a change."
        " A ring has doubts.",
        "各结果的中位数及区间；深色线为水平（倾斜表示漂移），虚线标出变化；空心点表示存疑。",
    ),
    "over_time": ("Over time", "按时间"),
    "in_order": ("In order", "按顺序"),
    "axis_order": ("results in order", "按顺序排列的结果"),
    "what_holds": ("What holds for these figures", "这些数字的适用条件"),
    "hold_case": (
        "A case has one line for each machine. The framework’s version may change along a line; everything"
        " else that a result is keyed by is the same.",
        "每个用例在每台机器上各有一条线；线上框架版本可以不同，其余用来区分结果的条件均相同。",
    ),
    "hold_change": (
        "A change is a lasting change of level, judged by the trials’ own spread and by the spread from run"
        " to run. It does not say why: a fact that fits well changed at the same place.",
        "“变化”指持久的水平变化，同时考虑各次试验的离散与运行之间的离散。它不说明原因：吻合度高的事实只是在同一处改变。",
    ),
    "hold_drift": (
        "A drift is a level that moves slowly and steadily: a straight line explains the results between two"
        " changes better than any step.",
        "“漂移”指水平缓慢而持续的移动：两次变化之间的结果，用一条直线解释比用任何阶跃都好。",
    ),
    "hold_fit": (
        "The fit of a fact is the share of results before the change with its usual value there, times that"
        " share after it; 1 is constant before, constant after, and different.",
        "事实的吻合度：变化前取其常见值的结果所占比例，乘以变化后的同一比例；"
        "1 表示之前不变、之后不变且两者不同。",
    ),
    "hold_interval": (
        "Intervals cover what varies from trial to trial inside a run; days and reboots vary by more.",
        "区间只涵盖一次运行内各次试验之间的变化；不同日期、重启之间差异更大。",
    ),
}


def history_words(lang: Lang) -> dict[str, str]:
    """The words of one language by their name."""
    column = LANGUAGES.index(lang)
    return {name: pair[column] for name, pair in HISTORY_WORDS.items()}
