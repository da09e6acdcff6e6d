"""Sentences of an explanation in Chinese, by the English template that made them.

An explanation holds finished sentences. One that fits a template is written anew with the same values; one
that fits none stays in English.
"""

from __future__ import annotations

import re

from trainmark.explain.report.language.memory import MEMORY_SENTENCES
from trainmark.explain.report.language.notes import NOTE_SENTENCES, SUBJECTS
from trainmark.report.format.words import Lang, Sentences, translated

SUBJECT = re.compile(rf"({'|'.join(SUBJECTS)}|Rank \d+): (.+)", re.DOTALL)
BETWEEN_SENTENCES = re.compile(r"(?<=\.) (?=[A-Z])")
SENTENCES: Sentences = (
    # Titles of changes
    ("compile the model", "编译模型"),
    ("capture the step as a CUDA graph", "将一步捕获为 CUDA graph"),
    ("a host that is never late", "主机从不延迟"),
    ("no Python between operators", "算子之间没有 Python"),
    ("no synchronisation inside the step", "步内不同步"),
    ("a loader that costs nothing", "数据加载不耗时"),
    ("twice the batch", "批量加倍"),
    ("the largest batch that fits", "可容纳的最大批量"),
    ("tensors with channels last", "张量采用 channels last"),
    ("bfloat16 in place of float32", "以 bfloat16 代替 float32"),
    ("a fused optimiser", "融合优化器"),
    ("communication hidden under computing", "通信被计算掩盖"),
    ("a link of twice the bandwidth", "链路带宽加倍"),
    ("every class at its floor", "所有类别达到下限"),
    ("the device at its highest clock", "设备以最高频率运行"),
    ("on a {device}", "换用 {device}"),
    # What to do, in words
    ("batch_size × 2, with the learning rate that goes with it", "batch_size × 2，并相应调整学习率"),
    (
        "the largest batch_size that fits, with the learning rate that goes with it",
        "可容纳的最大 batch_size，并相应调整学习率",
    ),
    ("reduce gradients while others are still computed", "在其余梯度仍在计算时归约已有梯度"),
    ("use the framework's compiler", "使用框架自带的编译器"),
    ("use a {device}", "使用 {device}"),
    (
        "the best that kernels could give on this device; no setting does it",
        "本设备上核函数所能达到的极限；没有对应的设置",
    ),
    (
        "fewer and larger kernels: a larger batch, or more of the step in one graph",
        "使用更少、更大的核函数：增大批量，或将一步的更多部分纳入同一 CUDA graph",
    ),
    (
        "fewer and larger operators: tensors in place of loops, or a larger batch",
        "使用更少、更大的算子：以张量代替循环，或增大批量",
    ),
    (
        "read no value of the device inside the step: no .item(), float(), .cpu() or synchronize()",
        "步内不读取设备上的值：不用 .item()、float()、.cpu() 或 synchronize()",
    ),
    ("prefetch batches in other processes", "在其他进程中预取数据"),
    ("NHWC in place of NCHW", "以 NHWC 代替 NCHW"),
    ("an optimiser that updates all parameters in one kernel", "用一个核函数更新所有参数的优化器"),
    ("bfloat16 for products", "矩阵乘使用 bfloat16"),
    (
        "take {call} out of the step, or do it every hundred steps",
        "将 {call} 移出训练步，或每一百步执行一次",
    ),
    # Advice
    (
        "The device waits for the next batch for {share} of the step.",
        "设备有 {share} 的时间在等待下一批数据。",
    ),
    (
        "The device waits for the next batch for {share} of the step ({evidence}).",
        "设备有 {share} 的时间在等待下一批数据（{evidence}）。",
    ),
    (
        "The training waits for the next batch for {share} of the step.",
        "训练有 {share} 的时间在等待下一批数据。",
    ),
    (
        "The training waits for the next batch for {share} of the step ({evidence}).",
        "训练有 {share} 的时间在等待下一批数据（{evidence}）。",
    ),
    ("Python between operators takes {share} of the step.", "算子之间的 Python 占一步的 {share}。"),
    (
        "Python between operators takes {share} of the step ({evidence}).",
        "算子之间的 Python 占一步的 {share}（{evidence}）。",
    ),
    (
        "The device waits because the host synchronises with it for {share} of the step.",
        "因主机同步，设备有 {share} 的时间在等待。",
    ),
    (
        "The device waits because the host synchronises with it for {share} of the step ({evidence}).",
        "因主机同步，设备有 {share} 的时间在等待（{evidence}）。",
    ),
    (
        "The device waits for the host to launch kernels for {share} of the step.",
        "设备有 {share} 的时间在等待主机下发核函数。",
    ),
    (
        "The device waits for the host to launch kernels for {share} of the step ({evidence}).",
        "设备有 {share} 的时间在等待主机下发核函数（{evidence}）。",
    ),
    (
        "Products run in {precision}; this device multiplies bfloat16 {times} times as fast.",
        "矩阵乘以 {precision} 运行；本设备以 bfloat16 计算可快 {times} 倍。",
    ),
    (
        "Kernels that only change NCHW to NHWC and back take {share} of the step.",
        "仅在 NCHW 与 NHWC 之间转换的核函数占一步的 {share}。",
    ),
    (
        "The optimiser takes {launches} launches and {time} a step: it is not fused.",
        "优化器每步启动 {launches} 次、耗时 {time}：未融合。",
    ),
    (
        "The optimiser takes {count} operators and {time} a step: it is not fused.",
        "优化器每步调用 {count} 个算子、耗时 {time}：未融合。",
    ),
    (
        "Communication that nothing hides takes {share} of the step at {speed} GB/s, where the fabric gives"
        " {limit}.",
        "未被掩盖的通信占一步的 {share}，速率 {speed} GB/s，而链路可达 {limit}。",
    ),
    (
        "Communication that nothing hides takes {share} of the step at {speed} GB/s.",
        "未被掩盖的通信占一步的 {share}，速率 {speed} GB/s。",
    ),
    (
        "Communication that nothing hides takes {share} of the step.",
        "未被掩盖的通信占一步的 {share}。",
    ),
    ("The device runs below its highest clock.", "设备未以最高频率运行。"),
    (
        "A compiler fuses chains of elementwise operations and normalisations.",
        "编译器可将连续的逐元素与归一化操作融合。",
    ),
    ("A captured step needs no launches.", "捕获后的一步无需逐个下发。"),
    ("The device waits for the host between kernels.", "设备在核函数之间等待主机。"),
    (
        "A larger batch shares what does not grow with it among more samples.",
        "批量越大，不随批量增长的开销由越多样本分摊。",
    ),
    ("Convolutions read channels last.", "卷积以 channels last 读取。"),
    ("bfloat16 takes half of the bytes.", "bfloat16 只占一半字节。"),
    (
        "Communication could run while gradients are computed.",
        "通信可与梯度计算同时进行。",
    ),
    # Why a change would give its step
    (
        "{gaps} of waiting for launches become {left}: 1 µs for each gap.",
        "等待下发的 {gaps} 变为 {left}：每个间隙 1 µs。",
    ),
    ("The step without {time} of waiting for the host.", "一步减去等待主机的 {time}。"),
    (
        "The step without {waiting} of synchronisation and {gaps} of launch gaps that follow it: the host"
        " issues a step in less time than the device takes.",
        "一步减去同步的 {waiting} 与随后的下发间隙 {gaps}：主机下发一步的时间短于设备所需。",
    ),
    ("The step without {time} of Python.", "一步减去 Python 的 {time}。"),
    ("The step without {time} of waiting in synchronisation.", "一步减去同步等待的 {time}。"),
    ("The step without {time} of waiting for the next batch.", "一步减去等待下一批数据的 {time}。"),
    (
        "{before} elementwise, normalising and reducing launches become {after}, at most one in each place"
        " between products, with {ratio} of their bytes: {time} become {fused}.",
        "{before} 次逐元素、归一化与归约启动变为 {after} 次，矩阵乘之间至多一次，"
        "字节数为原来的 {ratio}：{time} 变为 {fused}。",
    ),
    ("The update, compiled as well: {time}.", "参数更新一并编译：{time}。"),
    (
        "The host still takes {time} to issue a step, and the device waits for it: capture a graph as well.",
        "主机下发一步仍需 {time}，设备等待主机：请同时捕获 CUDA 图。",
    ),
    (
        "There the host sets the step: it takes {time} to issue one.",
        "届时步时取决于主机：下发一步需 {time}。",
    ),
    (
        "Inductor turns convolutions to channels last, without kernels that change layouts.",
        "Inductor 将卷积转为 channels last，不再需要转换布局的核函数。",
    ),
    (
        "{constant} of a step (optimiser, starts of kernels, exposed communication, gaps) do not grow with"
        " the batch: {factor} times the samples share them; the time is that of as many as now.",
        "一步中有 {constant}（优化器、核函数启动、未掩盖的通信、间隙）不随批量增长，由 {factor} 倍样本分摊；"
        "此处为与现在同样多样本的时间。",
    ),
    (
        "The step without {time} of changing layouts around convolutions.",
        "一步减去卷积前后转换布局的 {time}。",
    ),
    (
        "The step without {time} of changing layouts around convolutions, and normalisation at what its"
        " bytes need: {norm}.",
        "一步减去卷积前后转换布局的 {time}，归一化降至其字节数所需的 {norm}。",
    ),
    (
        "Products at {times} times the peak, as far from it as now and a little further; elementwise"
        " operations and normalisation: half of the bytes; the optimiser stays in float32.",
        "矩阵乘的峰值为 {times} 倍，达到峰值的比例与现在相近而略低；逐元素与归一化的字节数减半；"
        "优化器仍为 float32。",
    ),
    (
        "Products at {times} times the peak, as far from it as now and a little further; elementwise"
        " operations and normalisation: unchanged (converted on the fly); the optimiser stays in float32.",
        "矩阵乘的峰值为 {times} 倍，达到峰值的比例与现在相近而略低；逐元素与归一化不变（边读边转换）；"
        "优化器仍为 float32。",
    ),
    ("Attention by a flash kernel: {time}.", "注意力改用 flash 核函数：{time}。"),
    (
        "{launches} launches of the optimiser become {fused} that pass over weights, gradients and state"
        " once: {time} become {then}.",
        "优化器的 {launches} 次启动变为 {fused} 次，权重、梯度与状态只遍历一次：{time} 变为 {then}。",
    ),
    (
        "The step without {time} of communication that nothing hides.",
        "一步减去未被掩盖的通信 {time}。",
    ),
    (
        "Half of the {time} of exposed communication: transfers take half the time.",
        "未掩盖的通信 {time} 减半：传输时间减半。",
    ),
    (
        "{time} less, were every class with a known floor at it; idle time as now.",
        "若下限已知的类别都达到下限，可减少 {time}；空闲时间不变。",
    ),
    (
        "The device ran at {share} of its highest clock, and products take as much longer.",
        "设备以最高频率的 {share} 运行，矩阵乘相应变慢。",
    ),
    (
        "{device} has {flops} times the {precision} peak and {memory} times the bandwidth, by their"
        " datasheets; the host and the link stay.",
        "按规格书，{device} 的 {precision} 峰值为 {flops} 倍，带宽为 {memory} 倍；主机与链路不变。",
    ),
    # What intervals rest on
    ("{count} verified predictions of it on {kind}", "{kind} 上该改动的 {count} 次已验证预测"),
    (
        "{count} verified predictions of steps that wait for the host, on {kind}",
        "{kind} 上等待主机的各步的 {count} 次已验证预测",
    ),
    (
        "{count} verified predictions of all changes on {kinds}: on {kind} none was verified",
        "{kinds} 上全部改动的 {count} 次已验证预测：{kind} 上尚无验证",
    ),
    (
        "{count} verified predictions of all changes on any device",
        "所有设备上全部改动的 {count} 次已验证预测",
    ),
    ("{count} verified predictions of all changes on {kind}", "{kind} 上全部改动的 {count} 次已验证预测"),
    (
        "no record: fewer than 4 what-ifs were verified, the interval is a guess",
        "没有记录：已验证的预测不足 4 次，区间为估计",
    ),
    # Refusals and notes
    (
        "The profiled step took {difference}% longer than the steps timed without the profiler ({profiled}"
        " against {measured} ms), more than {most}%: its shares would not be those of the real step.",
        "分析时的一步比不带分析器的计时长 {difference} %（{profiled} 与 {measured} ms），超过 {most} %："
        "其占比不是真实一步的占比。",
    ),
    (
        "The profiled step took {difference}% shorter than the steps timed without the profiler ({profiled}"
        " against {measured} ms), more than {most}%: its shares would not be those of the real step.",
        "分析时的一步比不带分析器的计时短 {difference} %（{profiled} 与 {measured} ms），超过 {most} %："
        "其占比不是真实一步的占比。",
    ),
    ("The profiler lost 1 record: profile fewer steps.", "分析器丢失了 1 条记录：请减少分析的步数。"),
    (
        "The profiler lost {count} records: profile fewer steps.",
        "分析器丢失了 {count} 条记录：请减少分析的步数。",
    ),
    ("The profile has no complete step: profile more steps.", "分析结果中没有完整的一步：请增加分析的步数。"),
    ("The profile has no records of the device.", "分析结果中没有设备的记录。"),
    (
        "No step annotations: everything recorded is taken as one step.",
        "没有步的标记：全部记录视为一步。",
    ),
    (
        "No step annotations: {steps} steps were made out by the kernels that repeat ({kernels} a step).",
        "没有步的标记：由重复的核函数识别出 {steps} 步（每步 {kernels} 个）。",
    ),
    (
        "The profiler ran out of buffers and ended the recording early.",
        "分析器缓冲区用尽，记录提前结束。",
    ),
    (
        "For shares, profile on a quiet machine, with more steps (--profile-steps 20) or a larger batch:"
        " operators of a few microseconds cost the profiler as much as they take.",
        "若要占比，请在空闲的机器上、以更多步数（--profile-steps 20）或更大批量重新分析："
        "耗时仅数微秒的算子，分析器的开销与其本身相当。",
    ),
    (
        "What the profile lacks ran where the profiler does not look, or the steps beside it were disturbed:"
        " more steps (--profile-steps 20) tell which.",
        "分析所缺的部分在分析器未覆盖之处运行，或旁边的各步受到干扰：更多步数（--profile-steps 20）可分辨。",
    ),
    (
        "The profile lacks nothing: its steps took as long by the program's own clock, so the steps"
        " beside it were disturbed; profile on a quiet machine.",
        "分析并无缺失：按程序自身时钟，其各步耗时相同，故旁边的各步受到干扰；请在安静的机器上分析。",
    ),
    (
        "A class is faster than its floor: the machine was busier when its peaks were measured at the end,"
        " or caches spared its memory.",
        "有类别快于其下限：峰值在最后测得，当时机器更忙，或缓存减少了访存。",
    ),
    # Evidence
    (
        "{late} of the launches came late, {mean} µs idle before each",
        "{late} 的下发过晚，每次之前空闲 {mean} µs",
    ),
    (
        "starts of kernels in the queue, {mean} µs each",
        "队列中核函数的启动，每次 {mean} µs",
    ),
    (
        "{time} of it would be hidden without the synchronisation before it",
        "若无此前的同步，其中 {time} 会被掩盖",
    ),
    ("Python between operators · {count} · {time}", "算子之间的 Python · {count} · {time}"),
    ("before {kernel} · {count} · {time}", "{kernel} 之前 · {count} · {time}"),
    ("next batch · {count} · {time}", "下一批数据 · {count} · {time}"),
    ("next batch: {place} · {count} · {time}", "下一批数据：{place} · {count} · {time}"),
    *MEMORY_SENTENCES,
    *NOTE_SENTENCES,
)


def sentence(text: str, lang: Lang) -> str:
    """Return the sentence in a language; in English it is as it was made. Several are translated each."""
    if lang == "zh" and (subject := SUBJECT.fullmatch(text)):
        return f"{SUBJECTS.get(subject[1], subject[1])}：{sentence(subject[2], lang)}"
    pieces = BETWEEN_SENTENCES.split(text)
    each = [translated(piece, lang, SENTENCES) for piece in pieces]
    return "".join(each) if all(map(str.__ne__, pieces, each)) else translated(text, lang, SENTENCES)
