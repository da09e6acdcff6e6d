"""The words for doubts: a clause and a name for each code, and the Chinese of their sentences."""

from __future__ import annotations

from trainmark.measure.doubts import Doubt, DoubtCode, Severity
from trainmark.pages import doubts
from trainmark.report.format.words import LANGUAGES, Lang
from trainmark.view.catalogue import translated

# What a verdict says of a doubt, in English; in Chinese the doubt's name, which is such a clause already.
DOUBTS: dict[DoubtCode, str] = {
    DoubtCode.FEW_TRIALS: "too few trials for a 95 % interval",
    DoubtCode.NOISY_TRIALS: "trials vary",
    DoubtCode.FAILED_TRIALS: "some trials failed",
    DoubtCode.WINDOW_TOO_SHORT: "the steady window was too short",
    DoubtCode.WARMUP_PAST_WINDOW: "warm-up lasted longer than allowed for",
    DoubtCode.NEVER_SETTLED: "step times never settled",
    DoubtCode.DATA_BOUND: "steps waited for data",
    DoubtCode.THROTTLED: "clocks were throttled",
    DoubtCode.DEVICE_SHARED: "other processes used the device",
    DoubtCode.HOST_BUSY: "the host was busy",
    DoubtCode.HOST_CLOCK: "the host timed the steps of a GPU",
    DoubtCode.SCOPE_AMBIGUOUS: "it is not known what the rate counts",
    DoubtCode.SUPERLINEAR: "scaling is more than linear",
    DoubtCode.COLLAPSED_SCALING: "scaling collapsed",
    DoubtCode.NAN_LOSS: "the loss was not a number",
    DoubtCode.LOSS_NOT_FALLING: "the loss did not fall",
    DoubtCode.COPIED_LOGS: "logs are copies of one another",
    DoubtCode.MEAN_OF_RATES: "the program's own figure is a mean of rates",
    DoubtCode.RUN_CUT_SHORT: "the run did not end well",
    DoubtCode.OUT_OF_ORDER: "the lines of the log are out of order",
    DoubtCode.LINES_MISSING: "the log lacks lines",
    DoubtCode.SETTINGS_CONFLICT: "settings contradict each other",
    DoubtCode.UNEVEN_SPEED: "the speed was uneven",
    DoubtCode.WHOLE_RUN_DIFFERS: "the run as a whole had another rate",
    DoubtCode.OWN_FIGURE: "only the program's own figure is known",
    DoubtCode.UNKNOWN_SHAPE: "the log has no known shape",
    DoubtCode.WRONG_LAYOUT: "the memory layout is a slow one",
    DoubtCode.FELL_BACK: "part of the step fell back to another way",
    DoubtCode.STRAGGLER: "a rank or node holds the others back",
    DoubtCode.MIXED_ENVIRONMENT: "trials ran in different environments",
    DoubtCode.RESUMED: "the training was resumed",
    DoubtCode.TARGET_NOT_REACHED: "the target was not always reached",
    DoubtCode.ACCURACY_SPREAD: "seeds differ in their accuracy",
    DoubtCode.RECIPE_CHANGED: "the recipe was changed",
    DoubtCode.TRAINING_UNCOUNTED: "other processes or threads of the program trained too",
    DoubtCode.UNEQUAL_TURNS: "it is not certain what one step is",
    DoubtCode.EVALUATION_IN_STEPS: "most steps evaluate as well",
    DoubtCode.LONG_STEPS: "a few long steps take much of the time",
    DoubtCode.LINES_IN_BURSTS: "lines came in bursts",
}

SEVERITIES: dict[Severity, tuple[str, str]] = {
    Severity.SEVERE: ("severe", "严重"),
    Severity.CAUTION: ("caution", "注意"),
    Severity.NOTE: ("note", "提示"),
}

IN_TRIALS = ("{clause} in {trials} of {of} trials", "{clause}（{of} 次试验中的 {trials} 次）")
IN_TRIALS_ZH = "{of} 次试验中有 {trials} 次：{sentence}"
SENTENCES_ZH: dict[str, str] = {
    "few-trials": "{n} 次试验不足以给出 95 % 区间；请至少运行 {enough} 次。",
    "few-trials/one": "1 次试验不足以给出 95 % 区间；请至少运行 {enough} 次。",
    "noisy-trials": "各次试验相差 {spread}（四分位距与中位数之比）；请停止本机上的其他工作，或增加试验次数。",
    "failed-trials": "{n} 次试验中有 {failed} 次失败，未计入结果；请先查看其日志。",
    "mixed-environment": "各次试验在 {environments} 个不同的环境中运行；请在同一环境中运行全部试验。",
    "superlinear-scaling": "{devices} 个设备达到线性扩展的 {efficiency}，超过线性；"
    "请检查单设备基准，以及样本是否按单个 rank 计数。",
    "collapsed-scaling": "{devices} 个设备仅达到线性扩展的 {efficiency}；"
    "请检查设备之间的互连，以及每个设备的批量。",
    "data-bound": "训练步有 {wait} 的时间在等待数据；请增加数据读取进程，或与合成数据对比。",
    "data-bound/waiting": "因数据读取损失 {lost}：{own} {unit}/s，合成数据为 {synthetic}；"
    "训练步有 {wait} 的时间在等待数据：请增大 `workers`，或换用更快的 `loader`。",
    "data-bound/contending": "因数据读取损失 {lost}：{own} {unit}/s，合成数据为 {synthetic}；"
    "训练步几乎不等待数据，说明数据读取占用了训练的 CPU 核或设备时间："
    "请减小 `workers`，或换用在别处运行的 `loader`。",
    "never-settled": "单步耗时在 {steps} 步内未稳定；请运行更多步，或检查频率、内存、数据是否漂移。",
    "window-too-short": "{steps} 步中只有 {steady} 步稳定，至少需要 {needed} 步；请运行更多步。",
    "warmup-past-window": "{floor} 步之后仍在预热，前 {first} 步均未计入；"
    "请将 warmup.steps 设为 {first} 或更大。",
    "warmup-past-window/program": "{floor} 步之后仍在预热，前 {first} 步均未计入；"
    "请加上 `--warmup {first}` 或更大的数。",
    "throttled": "{samples} 个采样中有 {throttled} 个出现降频（{reasons}）；请改善散热或供电，或锁定频率。",
    "device-shared": "统计窗口内其他进程（最多同时 {most} 个）使用了 {devices}；请停止它们后重新运行。",
    "host-busy": "统计窗口内其他进程占用了主机 {share} 的 CPU 时间；请停止它们后重新运行。",
    "host-clock": "程序使用了 GPU，而步的时刻由主机记录，主机可能只是把工作排入队列；"
    "请给 probe.start 指定 clock："
    '"cuda" 或 "jax"，若每一步都等待 GPU 则用 "synchronous"。',
    "host-busy/node": "统计窗口内其他进程占用了节点 {node} {share} 的 CPU 时间；请停止它们后重新运行。",
    "nan-loss": "{reports} 次损失报告中有 {bad} 次不是有限数；请降低学习率，或检查损失缩放。",
    "loss-not-falling": "{steps} 步中损失由 {before} 变为 {after}；请确认训练步确实在训练。",
    "wrong-layout": "{precision} 以 NCHW 运行，这是张量核心较慢的布局；请使用 NHWC。",
    "fell-back": "训练步的一部分未按预期方式执行（{first}）；不要将其视为该设备的最佳表现。",
    "fell-back/several": "训练步的一部分未按预期方式执行（{first}，另有 {more} 处见 rank 的日志）；"
    "不要将其视为该设备的最佳表现。",
    "straggler": "rank {place} 拖慢了其他 rank：每步中它自身耗时 {own}，其他为 {others}，"
    "损失 {cost} 的吞吐量（{lost} {unit}/s）；请检查其设备、主机和链路。",
    "straggler/node": "节点 {place} 拖慢了其他节点：每步中它自身耗时 {own}，其他为 {others}，"
    "损失 {cost} 的吞吐量（{lost} {unit}/s）；请检查其设备、主机和链路。",
    "straggler/late": "rank {place} 每步比其他 rank 晚结束 {excess}；此处无法区分工作与等待，"
    "因此最多损失 {cost} 的吞吐量（{lost} {unit}/s）；请检查其设备、主机和链路。",
    "straggler/late-node": "节点 {place} 每步比其他节点晚结束 {excess}；此处无法区分工作与等待，"
    "因此最多损失 {cost} 的吞吐量（{lost} {unit}/s）；请检查其设备、主机和链路。",
    "resumed": "训练被终止并恢复了 {count} 次；计时从未暂停，其中有 {lost} 秒没有进行有效训练；"
    "若时间重要，请不间断地重新运行。",
    "resumed/once": "训练被终止并恢复了一次；计时从未暂停，其中有 {lost} 秒没有进行有效训练；"
    "若时间重要，请不间断地重新运行。",
    "resumed/damaged": "训练被终止并恢复了 {count} 次，并跳过了损坏的检查点（{skipped}）；"
    "计时从未暂停，其中有 {lost} 秒没有进行有效训练；若时间重要，请不间断地重新运行。",
    "recipe-changed": "未遵循配方 {recipe}（{departures}）；其精度与训练时间不可与遵循该配方者比较。",
    "target-not-reached": "{decided} 次试验中有 {missed} 次未达到 {target}，视为比任何达标试验都长；"
    "请训练更多 epoch，或检查配方。",
    "target-not-reached/best": "{decided} 次试验中有 {missed} 次未达到 {target}（最佳 {metric} {best}），"
    "视为比任何达标试验都长；请训练更多 epoch，或检查配方。",
    "accuracy-spread": "{seeds} 个种子的最佳 {metric} 介于 {low} 与 {high} 之间；"
    "请训练更多种子，不要凭其中之一排名。",
    "training-uncounted": "除本结果所计的一个之外，程序还有 {count} 个进程或线程在训练；"
    "请只在其中一个里训练，或像 torchrun 那样将它们作为 rank 启动。",
    "unequal-turns": "各优化器分别更新了 {turns} 次，且其顺序无法区分一轮与下一轮，因此一步的含义不明；"
    "请在每轮之后调用探针，或用 --pattern 给出每轮打印的一行。",
    "evaluation-in-steps": "多数步中都有评估：{share} 的时间里模型处于评估模式且没有反向传播，"
    "这部分计作训练（如教师模型）；除去后速率为 {rate} {unit}/s。",
    "long-steps": "{steps} 步中有 {count} 步（每 {every} 步一次）比通常的一步（{usual}）"
    "多用了全部时间的 {share}，如同程序在其中评估或保存；除去这部分，速率为 {rate} {unit}/s；"
    '若这不属于训练，请调用探针，并在其后调用 run.mark("eval")。',
    "long-steps/irregular": "{steps} 步中有 {count} 步比通常的一步（{usual}）多用了全部时间的 {share}："
    "程序在其中评估、保存或受到阻滞；除去这部分，速率为 {rate} {unit}/s；"
    '若这不属于训练，请调用探针，并在其后调用 run.mark("eval")。',
    "lines-in-bursts": "{lines} 行训练步输出分 {bursts} 批到达，因此单步耗时是各批的平均；"
    "请让程序逐行刷新输出（`python -u`、`stdbuf -oL`），并停止本机上的其他工作。",
}


def doubt_name(code: DoubtCode, lang: Lang) -> str:
    """Return the stable code, or its Chinese name."""
    return translated(doubts.doubt_name(code.value), lang)


def severity_name(severity: Severity, lang: Lang) -> str:
    return SEVERITIES[severity][LANGUAGES.index(lang)]


def doubt_sentence(doubt: Doubt, lang: Lang) -> str:
    """Return the message; in English where the doubt, stored by an earlier version, cannot be translated."""
    template = SENTENCES_ZH.get(doubt.sentence)
    if lang == "en" or template is None:
        return doubt.message
    try:
        sentence = template.format(**dict(doubt.values))
    except (KeyError, IndexError):
        return doubt.message
    if doubt.trials is None:
        return sentence
    return IN_TRIALS_ZH.format(trials=doubt.trials, of=doubt.of, sentence=sentence)


def doubt_clause(doubt: Doubt, lang: Lang) -> str:
    """Return a few words for a verdict: `the host was busy in 4 of 6 trials`."""
    column = LANGUAGES.index(lang)
    clause = DOUBTS[doubt.code] if lang == "en" else doubt_name(doubt.code, lang)
    if doubt.trials is None:
        return clause
    return IN_TRIALS[column].format(clause=clause, trials=doubt.trials, of=doubt.of)
