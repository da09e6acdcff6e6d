"""Notes of an explanation or of a difference in Chinese, by the English template that made them."""

from __future__ import annotations

from itertools import product

from trainmark.explain.report.language.words import CLASSES
from trainmark.measure.doubts import SENTENCES as DOUBTS
from trainmark.report.format.doubt_words import SENTENCES_ZH as DOUBTS_ZH
from trainmark.report.format.words import Sentences

# What a note may begin with, before a sentence of its own.
SUBJECTS = {"Of the measured steps": "测得的各步", "Memory": "内存"}

_CLOCKS: Sentences = tuple(
    (
        "{device}: SM clock {clock} of {highest} MHz on average, " + why + power + temperature + ".",
        "{device}：SM 频率平均 {clock} MHz，最高 {highest} MHz，" + why_zh + power_zh + temperature_zh + "。",
    )
    for (why, why_zh), (power, power_zh), (temperature, temperature_zh) in product(
        (
            (
                "throttled in {share} of {count} samples ({reasons})",
                "{count} 个采样中 {share} 降频（{reasons}）",
            ),
            (
                "without a reason from the driver: clocks may be locked (nvidia-smi -q -d CLOCK)",
                "驱动未给出原因：频率可能被锁定（nvidia-smi -q -d CLOCK）",
            ),
        ),
        (("", ""), (", {power} W", "，{power} W")),
        (("", ""), (", {temperature} °C at most", "，最高 {temperature} °C")),
    )
)

_PASSES: Sentences = (
    ("there is no {name} pass.", "没有 {name} 分析。"),
    ("the {name} pass failed: {error}.", "{name} 分析失败：{error}。"),
    ("the trace of the {name} pass is missing.", "缺少 {name} 分析的记录。"),
    (
        "the {name} pass recorded no kernels; may this user profile the GPU?",
        "{name} 分析没有记录到核函数；该用户是否有权分析 GPU？",
    ),
    (
        "{count} devices in one trace: device {device} has most records; {others} records of the others are"
        " left out.",
        "一份记录中有 {count} 个设备：设备 {device} 的记录最多；其余 {others} 条未计入。",
    ),
)

_REFERENCE: Sentences = (
    (
        "Beside the profiled steps the host was slower ({beside} ms a step) than when the case was measured"
        " ({measured} ms): the table is of the measured step.",
        "分析前后主机较慢（每步 {beside} ms），测量时为 {measured} ms：表中为测得的一步。",
    ),
)

_RANKS: Sentences = (
    (
        "rank {rank} comes late: the others wait {time} ms a step for it",
        "rank {rank} 迟到：其他 rank 每步等待它 {time} ms",
    ),
    ("{bucket}: {exposed} of {time} ms exposed", "{bucket}：{time} ms 中 {exposed} ms 未被掩盖"),
    (
        "{bucket}: {exposed} of {time} ms exposed, {rate} GB/s",
        "{bucket}：{time} ms 中 {exposed} ms 未被掩盖，{rate} GB/s",
    ),
    (
        "{bucket}: {exposed} of {time} ms exposed, {rate} GB/s = {share} of the fabric's",
        "{bucket}：{time} ms 中 {exposed} ms 未被掩盖，{rate} GB/s，为链路的 {share}",
    ),
)

_UNVERIFIED: Sentences = (
    (
        "{name} was not verified: no setting of this workload makes it",
        "{name} 未验证：该工作负载没有对应的设置",
    ),
    (
        "{name} was not verified: it changes the program's own code: make the change, then `trainmark"
        " explain` both",
        "{name} 未验证：需要修改程序自身的代码；请改好后用 `trainmark explain` 比较两者",
    ),
    ("{name} was not verified: {reason}", "{name} 未验证：{reason}"),
)

_DIFFERENCES: Sentences = (
    (
        "A takes {a} {unit} a step and B {b}: times are of one of them.",
        "A 每步 {a} {unit}，B 每步 {b}：时间按其中一个计。",
    ),
    (
        "The batch of {side} is not known: times are of a step, whatever its size.",
        "{side} 的批量未知：时间按一步计，不论其大小。",
    ),
    (
        "Ranks: {a} in A, {b} in B; times are of one rank's step.",
        "A 有 {a} 个 rank，B 有 {b} 个：时间为一个 rank 的一步。",
    ),
    (
        "Over the trials of both runs B's throughput is ×{measured} of A's (too few trials for an interval);"
        " the steps explained here give ×{explained}.",
        "按两次运行的全部试验，B 的吞吐量为 A 的 {measured} 倍（试验太少，没有区间）；"
        "此处解释的两步给出 {explained} 倍。",
    ),
    *(
        (
            "Over the trials of both runs B's throughput is ×{measured} of A's [{low}, {high}] at"
            " {confidence}; the steps explained here give ×{explained}, " + where + " that interval.",
            "按两次运行的全部试验，B 的吞吐量为 A 的 {measured} 倍 [{low}, {high}]（{confidence}）；"
            "此处解释的两步给出 {explained} 倍，在该区间" + where_zh + "。",
        )
        for where, where_zh in (("inside", "之内"), ("outside of", "之外"))
    ),
    *(
        (f"Only in {{side}}, {name}: {{kernels}}.", f"只在 {{side}} 中，{CLASSES[name][1]}：{{kernels}}。")
        for name in CLASSES
    ),
)

NOTE_SENTENCES: Sentences = (
    *((DOUBTS[name], chinese) for name, chinese in DOUBTS_ZH.items()),
    *_CLOCKS,
    *_PASSES,
    *_REFERENCE,
    *_RANKS,
    *_UNVERIFIED,
    *_DIFFERENCES,
)
