"""The words of `trainmark explain`, in English and Chinese side by side."""

from __future__ import annotations

from trainmark.report.format.words import LANGUAGES, Lang

EXPLAIN_WORDS: dict[str, tuple[str, str]] = {
    "on_device": ("{title} on {device}", "{title}，{device}"),
    "rate": ("{time} a step, {rate} {unit}/s.", "每步 {time}，{rate} {unit}/s。"),
    "time_only": ("{time} a step.", "每步 {time}。"),
    "most": ("{share} of the step is {name}", "{name}占一步的 {share}"),
    "most_floor": (
        "{share} of the step is {name}, {times} × its floor",
        "{name}占一步的 {share}，为其下限的 {times} 倍",
    ),
    "most_idle": ("the device is idle for {share}", "空闲占 {share}"),
    "most_idle_cause": (
        "the device is idle for {share} (mostly: {cause})",
        "空闲占 {share}（主因：{cause}）",
    ),
    "most_idle_cpu": ("no operator runs for {share}", "无算子运行占 {share}"),
    "most_idle_cause_cpu": (
        "no operator runs for {share} (mostly: {cause})",
        "无算子运行占 {share}（主因：{cause}）",
    ),
    "between": ("{name} takes {low} to {high} of the step", "{name}占一步的 {low} 至 {high}"),
    "as_far": ("As far as can be told: {clauses}", "就目前所知：{clauses}"),
    "caution": ("Caution: {doubt}", "注意：{doubt}"),
    "other_rate": (
        "The run measured {rate} {unit}/s: the steps beside the profile are later ones, without what comes"
        " now and then (a rollout, an evaluation, a new epoch), or the machine was busier at one time.",
        "该次运行测得 {rate} {unit}/s：分析旁的各步在其后，不含偶尔出现的部分（采样、评估、新的轮次），"
        "或机器的繁忙程度前后不同。",
    ),
    "maybe": ("; may be nothing", "；可能没有收益"),
    "most_join": ("; ", "；"),
    "full_stop": (".", "。"),
    "first": ("First: {sentence} {gain}", "首先：{sentence}{gain}"),
    "gain": ("(throughput {gain} {bounds}{maybe})", "（吞吐量 {gain} {bounds}{maybe}）"),
    "step_time": ("a step", "每步"),
    "ranks_of": ("{count} ranks", "{count} 个 rank"),
    "profiled_step": ("1 profiled step", "分析了 1 步"),
    "profiled_steps": ("{steps} profiled steps", "分析了 {steps} 步"),
    "agreement": (
        "Profiled {profiled} a step, timed without the profiler {measured}: {difference}.",
        "分析时每步 {profiled}，不分析时 {measured}：相差 {difference}。",
    ),
    "agreement_alone": (
        "No step was timed without the profiler: shares are of the profiled step, {profiled}.",
        "没有不带分析器的计时：占比以分析时的一步 {profiled} 为准。",
    ),
    "corrected": (
        "Kernels take as long with the profiler as without it; the gaps between them, which tracing widens,"
        " are reduced to what the timed step leaves for them.",
        "kernel 的时长不受分析影响；kernel 之间的间隙会被跟踪放大，此处缩减为计时所得一步中余下的时间。",
    ),
    "overhead": ("Profiling costs {overhead} of a step.", "分析的开销为一步的 {overhead}。"),
    "refused": ("No shares: {refusal}", "不给出占比：{refusal}"),
    "refused_above": (
        "No shares are given, for the reason above; the timeline shows what was recorded.",
        "因上述原因不给出占比；时间线仅显示所记录的内容。",
    ),
    "where": ("Where a step goes", "一步的时间去向"),
    "where_note": (
        "Each row is the time in which nothing of another class ran; overlap and idle time are rows of their"
        " own, so that the rows add up to the step. FLOP and bytes are of one step.",
        "每一行为没有其他类别同时运行的时间；重叠与空闲各自成行，因此各行之和等于一步。"
        "FLOP 与字节数为一步的量。",
    ),
    "floor_note": (
        "Floor: the least time for these FLOP and bytes at the peaks measured on this device ({peaks}).",
        "下限：以本设备实测峰值（{peaks}）完成这些 FLOP 与字节所需的最短时间。",
    ),
    "class": ("class", "类别"),
    "share": ("share", "占比"),
    "launches": ("launches", "启动次数"),
    "floor": ("floor", "下限"),
    "floor_ms": ("floor ms", "下限 ms"),
    "times_floor": ("× floor", "÷ 下限"),
    "bound": ("bound by", "受限于"),
    "arithmetic": ("arithmetic", "算力"),
    "memory_bound": ("memory", "内存带宽"),
    "link": ("link", "链路"),
    "sum": ("step", "一步"),
    "idle_row": ("idle: {cause}", "空闲：{cause}"),
    "overlap_join": (" + ", " + "),
    "overlap": ("overlap", "重叠"),
    "other_overlaps": ("other overlaps", "其他重叠"),
    "idle_title": ("Idle, by cause", "空闲及其原因"),
    "cause": ("cause", "原因"),
    "cause_is": ("{cause}:", "{cause}："),
    "gaps": ("gaps", "间隙数"),
    "evidence": ("evidence", "依据"),
    "against_floor": ("Time against the floor", "耗时与下限"),
    "against_floor_note": (
        "The solid part of a bar is the floor; the pale part is what a better kernel, layout or precision"
        " could win back at most.",
        "实心部分为下限；浅色部分是更好的核函数、布局或精度最多能省下的时间。",
    ),
    "kernels": ("Kernels", "核函数"),
    "kernels_title": ("Longest kernels", "耗时最长的核函数"),
    "kernel": ("kernel", "核函数"),
    "modules": ("By module", "按模块"),
    "modules_of": ("By module of {name}", "{name} 的各模块"),
    "module": ("module", "模块"),
    "forward": ("forward ms", "前向 ms"),
    "backward": ("backward ms", "反向 ms"),
    "what_if": ("What if", "如果"),
    "what_if_note": (
        "A prediction is the step that a change would give, with the interval that verified predictions"
        " support; “verified” is the step with the change really made.",
        "预测值为改动后的一步，其区间由已验证的预测给出；“实测”为真正改动后的一步。",
    ),
    "basis": ("Intervals rest on: {bases}.", "区间依据：{bases}。"),
    "change": ("change", "改动"),
    "prediction": ("predicted", "预测"),
    "predicted": ("step ms", "每步 ms"),
    "interval": ("interval", "区间"),
    "throughput": ("throughput", "吞吐量"),
    "verified": ("verified", "实测"),
    "error": ("error", "误差"),
    "trials": ("{count} trials", "{count} 次试验"),
    "why": ("Why", "依据"),
    "advice": ("Advice", "建议"),
    "no_advice": (
        "No change that is known here would give a certain gain.",
        "此处已知的改动都没有确定的收益。",
    ),
    "ranks": ("Ranks", "各 rank"),
    "rank": ("rank", "rank"),
    "node": ("node", "节点"),
    "compute": ("compute", "计算"),
    "exposed": ("exposed", "未掩盖"),
    "hidden": ("hidden", "已掩盖"),
    "idle": ("idle", "空闲"),
    "late": ("waited for", "被等待"),
    "ranks_note": (
        "In ms a step. Exposed is communication during which nothing was computed; “waited for” is how long"
        " the other ranks waited for this one.",
        "单位为每步 ms。“未掩盖”为没有同时计算的通信时间；“被等待”为其他 rank 等待它的时间。",
    ),
    "buckets": ("Collectives", "集合通信"),
    "bucket": ("collective", "集合通信"),
    "of_link": ("of the link", "占链路"),
    "link_note": (
        "The slowest link of the ranks carries {link}.",
        "各 rank 之间最慢的链路为 {link}。",
    ),
    "memory": ("Memory", "显存/内存"),
    "memory_line": ("At the peak {peak} are in use.", "峰值时使用 {peak}。"),
    "memory_reserved": (
        "At the peak {peak} are in use and {reserved} reserved.",
        "峰值时使用 {peak}，预留 {reserved}。",
    ),
    "name": ("name", "名称"),
    "holder": ("holder", "占用者"),
    "freed": ("freed by", "释放方法"),
    "timeline": ("Timeline", "时间线"),
    "timeline_label": (
        "Timeline of {steps} steps, {spans} spans in {lanes} lanes; the table below lists the longest",
        "{steps} 步的时间线，{lanes} 条泳道，{spans} 个区间；下表列出最长者",
    ),
    "timeline_help": (
        "Drag to move, pinch or use the buttons to zoom, tap a span for its name; with Ctrl or after a click"
        " the wheel zooms too. Keys: ← → move, + − zoom, 0 shows all, comma and full stop go to the"
        " previous and the next span.",
        "拖动可平移，双指或按钮可缩放，点按区间可看名称；按住 Ctrl 或单击后滚轮也可缩放。"
        "按键：← → 平移，+ − 缩放，0 显示全部，逗号与句点跳到上一个与下一个区间。",
    ),
    "thinned": ("{count} spans too short to draw are left out.", "{count} 个过短的区间未画出。"),
    "longest_spans": ("The {count} longest spans", "最长的 {count} 个区间"),
    "lane": ("lane", "泳道"),
    "start": ("start", "开始"),
    "duration": ("duration", "时长"),
    "step_number": ("step {number}", "第 {number} 步"),
    "whole": ("All", "全部"),
    "zoom_in": ("Zoom in", "放大"),
    "zoom_out": ("Zoom out", "缩小"),
    "trace": (
        "The whole trace is in {name}: open it with Perfetto (ui.perfetto.dev).",
        "完整的跟踪在 {name}：可用 Perfetto（ui.perfetto.dev）打开。",
    ),
    "notes": ("Notes", "说明"),
    "facts": ("What was explained", "被解释的程序"),
    "method": ("What holds for these figures", "如何理解这些数字"),
    "method_never": (
        "The profiled steps come after the measured ones: the profiler never ran among them.",
        "分析的各步在测量之后进行：测量期间从未开启分析器。",
    ),
    "method_refuse": (
        "Where the profiled step differs by more than 3 % from the one timed without the profiler, or records"
        " were lost, no share is given.",
        "若分析时的一步与不带分析器的计时相差超过 3 %，或有记录丢失，则不给出占比。",
    ),
    "difference_title": ("{a} against {b}", "{a} 与 {b} 之比较"),
    "difference_step": (
        "A step takes {before} in A and {after} in B: {change} ({percent}).",
        "A 每步 {before}，B 每步 {after}：{change}（{percent}）。",
    ),
    "difference_sample": (
        "A sample takes {before} in A and {after} in B: {change} ({percent}).",
        "每个样本 A 需 {before}，B 需 {after}：{change}（{percent}）。",
    ),
    "difference_most": (
        "Most of it: {name}, {change}.",
        "其中最大的一项：{name}，{change}。",
    ),
    "difference_where": ("Where the difference comes from", "差异来自何处"),
    "difference_note": (
        "Each bar begins where the one above ends: to the left B takes less time, to the right more. The"
        " changes add up to the whole difference.",
        "每一项从上一项的终点开始；向左为 B 用时更少，向右为更多。各项之和等于总差异。",
    ),
    "axis_cut": ("The axis begins at {low}, not at 0.", "坐标轴自 {low} 起，而非 0。"),
    "part": ("part", "部分"),
    "change_column": ("change", "变化"),
    "of_difference": ("of the difference", "占差异"),
    "rest": ("beyond the profile", "分析之外"),
    "unit_ms": ("ms a step", "ms/步"),
    "unit_us": ("µs a sample", "µs/样本"),
    "copy_button": ("Copy", "复制"),
    "copied": ("Copied", "已复制"),
    "selected": ("Selected", "已选中"),
    "list_join": (", ", "、"),
}

CLASSES: dict[str, tuple[str, str]] = {
    "convolution": ("convolution", "卷积"),
    "matrix product": ("matrix product", "矩阵乘"),
    "attention": ("attention", "注意力"),
    "normalisation": ("normalisation", "归一化"),
    "elementwise": ("elementwise", "逐元素"),
    "reduction": ("reduction", "归约"),
    "optimiser": ("optimiser", "优化器"),
    "copy": ("copy", "拷贝"),
    "communication": ("communication", "通信"),
    "other": ("other", "其他"),
}

CAUSES: dict[str, tuple[str, str]] = {
    "launch": ("host too late", "主机下发过晚"),
    "python": ("Python between operators", "算子之间的 Python"),
    "synchronisation": ("synchronisation", "同步"),
    "loader": ("data loader", "数据加载"),
    "communication": ("communication", "通信"),
    "dependency": ("stream order", "流内依赖"),
    "clocks": ("clocks", "频率"),
    "power": ("power", "功耗"),
    "other": ("other cause", "其他原因"),
}

HOLDERS: dict[str, tuple[str, str]] = {
    "weights": ("weights", "权重"),
    "gradients": ("gradients", "梯度"),
    "optimizer": ("optimizer", "优化器状态"),
    "activations": ("activations", "激活"),
    "buffers": ("buffers", "缓冲区"),
    "inputs": ("inputs", "输入"),
    "workspace": ("workspace", "工作区"),
    "fragmentation": ("fragmentation", "碎片"),
    "other": ("other", "其他"),
}


def explain_words(lang: Lang) -> dict[str, str]:
    column = LANGUAGES.index(lang)
    return {name: pair[column] for name, pair in EXPLAIN_WORDS.items()}


def class_name(name: str, lang: Lang) -> str:
    return _named(CLASSES, name, lang)


def cause_name(name: str, lang: Lang, kind: str | None = None) -> str:
    """On a CPU, where device and host are one, nothing is launched."""
    return _named(CAUSES, "python" if (name, kind) == ("launch", "cpu") else name, lang)


def holder_name(name: str, lang: Lang) -> str:
    return _named(HOLDERS, name, lang)


def _named(names: dict[str, tuple[str, str]], name: str, lang: Lang) -> str:
    """A name that is not listed is shown as it is."""
    pair = names.get(name)
    return pair[LANGUAGES.index(lang)] if pair else name
