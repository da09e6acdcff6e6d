"""Every word a report prints, in English and Chinese side by side, so that neither can lack one."""

from __future__ import annotations

import re
from functools import cache
from string import Formatter

from trainmark.view.catalogue import LANGUAGES as LANGUAGES
from trainmark.view.catalogue import Lang as Lang

# English templates of finished sentences, each with its Chinese.
Sentences = tuple[tuple[str, str], ...]

WORDS: dict[str, tuple[str, str]] = {
    "summary": (
        "Results: {results}, from {trials} trials ({ok} ok, {failed} failed). Cases skipped: {skipped}.",
        "结果 {results} 项，来自 {trials} 次试验（成功 {ok}，失败 {failed}）；跳过用例 {skipped} 个。",
    ),
    "no_results": (
        "No figure: no trial ended well. The reasons are listed under “Failed and skipped”.",
        "没有结果：所有试验均未成功，原因见“失败与跳过”。",
    ),
    "verdict_reliable": ("Reliable to ±{within}.", "可信，误差在 ±{within} 以内。"),
    "verdict_all_reliable": (
        "All {figures} figures are reliable to ±{within} or better.",
        "全部 {figures} 项结果可信，误差均在 ±{within} 以内。",
    ),
    "verdict_caution": (
        "Reliable to ±{within}, but check first: {reasons}.",
        "误差在 ±{within} 以内，但请先核实：{reasons}。",
    ),
    "verdict_wide": ("Known only to ±{within}.", "误差较大，仅知在 ±{within} 以内。"),
    "verdict_wide_caution": (
        "Known only to ±{within}: {reasons}.",
        "误差较大，仅知在 ±{within} 以内：{reasons}。",
    ),
    "verdict_provisional": ("Provisional: {reasons}.", "仅供参考：{reasons}。"),
    "verdict_some_caution": (
        "Check {concerned} of {figures} figures before use: {reasons}.",
        "{figures} 项结果中有 {concerned} 项需先核实：{reasons}。",
    ),
    "verdict_all_caution": (
        "Check these {figures} figures before use: {reasons}.",
        "全部 {figures} 项结果需先核实：{reasons}。",
    ),
    "verdict_unreliable": ("Do not rely on this: {reasons}.", "不要依赖此结果：{reasons}。"),
    "verdict_some_unreliable": (
        "Do not rely on {concerned} of {figures} figures: {reasons}.",
        "{figures} 项结果中有 {concerned} 项不可依赖：{reasons}。",
    ),
    "verdict_all_unreliable": (
        "Do not rely on these {figures} figures: {reasons}.",
        "全部 {figures} 项结果均不可依赖：{reasons}。",
    ),
    "verdict_no_figure": ("There is no figure: no trial ended well.", "没有结果：所有试验均未成功。"),
    "verdict_no_interval": ("too few trials for a 95 % interval", "试验次数不足以给出 95 % 区间"),
    "verdict_wide_interval": ("the interval is wide", "区间较宽"),
    "verdict_more": ("and {count} more", "另有 {count} 项"),
    "reason_join": ("; ", "；"),
    "list_join": (", ", "、"),
    "subject_join": (", ", "，"),
    "subject_at": ("{title} at {axes}", "{title}（{axes}）"),
    "subject_batch": ("batch {batch}", "批量 {batch}"),
    "subject_batch_per_device": ("batch {batch} per device", "每设备批量 {batch}"),
    "subject_thread": ("{threads} thread", "{threads} 线程"),
    "subject_threads": ("{threads} threads", "{threads} 线程"),
    "subject_nodes": ("{nodes} nodes", "{nodes} 个节点"),
    "subject_several": ("{count} {what}", "{count} 种{what}"),
    "subject_framework": ("frameworks", "框架"),
    "subject_precision": ("precisions", "精度"),
    "subject_device": ("kinds of device", "设备"),
    "subject_workload": ("workloads", "工作负载"),
    "doubt_of": ("{cases}: {sentence}", "{cases}：{sentence}"),
    "doubt_cases": ("{cases} and {count} more", "{cases} 等另外 {count} 个用例"),
    "doubt_more": ("{count} more sentences are in the JSON report.", "另有 {count} 条见 JSON 报告。"),
    "published_results": ("Published results", "公开结果"),
    "headline_count": ("{shown} of {results} results", "{results} 项结果中的 {shown} 项"),
    "steps_seen": ("Steps: {source}", "步的识别：{source}"),
    "pauses_left_out": (
        "In no step of the first trial: {pauses}",
        "第一次试验中不计入任何一步：{pauses}",
    ),
    "pause_counted": ("{kind} × {count}, {seconds}", "{kind} {count} 次，{seconds}"),
    "samples_counted": ("; samples: {source}", "；样本：{source}"),
    "full_stop": (".", "。"),
    "made_by": ("Measured with Trainmark {version}, {created}", "由 Trainmark {version} 测得，{created}"),
    "headline": ("Main results", "主要结果"),
    "results": ("Results", "结果"),
    "scaling": ("Scaling", "扩展性"),
    "throughput": ("Throughput", "吞吐量"),
    "throughput_note": (
        "Median of the trials with its interval; dashed: one device times the device count.",
        "各次试验的中位数及其区间；虚线为单卡吞吐量乘以设备数。",
    ),
    "efficiency": ("Efficiency", "扩展效率"),
    "efficiency_column": ("efficiency", "扩展效率"),
    "efficiency_note": ("Speed-up divided by the device count.", "加速比除以设备数。"),
    "weak_scaling": ("Weak scaling", "弱扩展"),
    "weak_note": (
        "Per-device batch is constant. Baseline: {baseline}.",
        "每个设备的批量不变；以 {baseline} 为基准。",
    ),
    "strong_scaling": ("Strong scaling", "强扩展"),
    "strong_note": (
        "Global batch is constant. Baseline: {baseline}.",
        "所有设备的总批量不变；以 {baseline} 为基准。",
    ),
    "strong_plot_note": (
        "Speed-up with its interval; dashed: linear in the device count.",
        "加速比及其区间；虚线为与设备数成正比。",
    ),
    "global_batch": ("global batch {batch}", "总批量 {batch}"),
    "loss": ("where the loss goes", "损失去向"),
    "loss_note": (
        "Efficiency and losses add up to 100 %. A loss is what that part takes of a sample's time beyond what"
        " it takes on the fewest devices; below zero it takes less.",
        "扩展效率与各项损失之和为 100 %。损失指该部分在每个样本上比最少设备时多花的时间；负值表示更少。",
    ),
    "loss_efficiency": ("efficiency", "扩展效率"),
    "loss_communication": ("communication", "通信"),
    "loss_straggling": ("waiting for the slowest", "等待最慢者"),
    "loss_data": ("data", "数据"),
    "loss_compute": ("slower compute", "计算变慢"),
    "loss_other": ("rest", "其余"),
    "time": ("Where the time goes", "时间去向"),
    "time_note": (
        "Shares of the wall time of the steady window, over the ranks. Communication is time in which a rank"
        " did nothing but wait for the others; what ran beside computing does not count. Own time is a step"
        " without that waiting.",
        "稳定窗口内墙钟时间的占比，对各 rank 取平均。通信指 rank 除等待其他 rank 外无事可做的时间，"
        "与计算重叠的部分不计。自身耗时为一步除去该等待后的时间。",
    ),
    "no_breakdown_note": (
        "{frameworks}: the ranks do not tell working from waiting, so it cannot be said where their time goes"
        " or which of them holds the others back.",
        "{frameworks}：各 rank 无法区分工作与等待，因此无法给出时间去向，也无法判定拖慢者。",
    ),
    "share_compute": ("compute", "计算"),
    "share_communication": ("communication", "通信"),
    "share_data": ("data", "数据"),
    "share_other": ("rest", "其余"),
    "ranks": ("ranks", "rank 数"),
    "rank": ("rank", "rank"),
    "node": ("node", "节点"),
    "own_time": ("own time", "自身耗时"),
    "held_back": ("holds the others back", "拖慢其他者"),
    "nodes_left_out": ("{count} faster nodes are not shown.", "另有 {count} 个较快的节点未列出。"),
    "frameworks": ("Frameworks", "框架对比"),
    "frameworks_note": (
        "The same case in each framework, the fastest first at each topology. The share is of the fastest;"
        " where its interval reaches 100 %, the two cannot be told apart.",
        "同一用例在各框架上的结果，每种拓扑下由快到慢排列。占比以最快者为准；"
        "区间达到 100 % 时，两者无法区分。",
    ),
    "framework_bars": ("Throughput by framework", "各框架吞吐量"),
    "framework_bars_note": (
        "Median of the trials; the thin line is its interval.",
        "各次试验的中位数；细线为其区间。",
    ),
    "framework_scaling": ("Scaling by framework", "各框架扩展性"),
    "placed": ("topology", "拓扑"),
    "framework": ("framework", "框架"),
    "layout": ("layout", "布局"),
    "compiler": ("compiler", "编译"),
    "share": ("share of the fastest", "占最快者之比"),
    "fastest": ("fastest", "最快"),
    "settling": ("settled after (steps)", "稳定所需步数"),
    "best_published": ("best published of the framework", "该框架的最佳公开结果"),
    "of_published": ("{percent} of it", "达到其 {percent}"),
    "a_device_of": ("a device of {topology}", "单设备，取自 {topology}"),
    "conformance": ("conformance", "一致性"),
    "conformant": ("conformant", "一致"),
    "not_conformant": ("not conformant", "不一致"),
    "not_checked": ("not checked", "未检查"),
    "differs": ("{framework} is not conformant: {differs}", "{framework} 不一致：{differs}"),
    "method_frameworks": (
        "Frameworks are compared where all else in the key is equal but version, layout and compiler."
        " Conformance says whether a framework was found to train the same model as the reference: what is"
        " not conformant, or not checked, may be fast because it does something else.",
        "仅当除版本、布局与编译外其余条件全部相同时，才对不同框架进行比较。一致性表示该框架是否与参考实现训练同一模型："
        "不一致或未检查的框架，其速度可能来自所做之事不同。",
    ),
    "finish": ("Time to train", "训练时间"),
    "finish_note": (
        "The clock of time2train starts with the first rank, right before data is touched, ends with the"
        " evaluation that crosses the target, and never pauses. AI-Rank's starts with the process. A trial"
        " that misses the target counts as longer than any that reaches it.",
        "time2train 从第一个 rank 即将读取数据时开始计时，到达标的那次评测结束为止，中途从不暂停；"
        "AI-Rank 的计时从进程启动开始。未达标的试验视为比任何达标试验都长。",
    ),
    "finish_rates_note": (
        "Training alone leaves out the first epoch and whatever stands between the epochs; with evaluation is"
        " all samples over all the time. Speed-up by time and by throughput differ where more devices need"
        " more epochs, or where evaluation and start-up do not shrink.",
        "“仅训练”不含首个 epoch 及 epoch 之间的一切；“含评测”为全部样本数除以全部时间。"
        "设备增多后若需更多 epoch，或评测与启动时间不随之缩短，按时间与按吞吐量的加速比就会不同。",
    ),
    "time2train": ("time2train", "time2train"),
    "reached": ("reached", "达标次数"),
    "airank_clock": ("AI-Rank's clock", "AI-Rank 计时"),
    "epochs_to_target": ("epochs", "epoch 数"),
    "best_metric": ("best {metric}", "最佳 {metric}"),
    "metric_there": ("{metric} there", "对应 {metric}"),
    "rate_train": ("{unit} training", "{unit} 仅训练"),
    "rate_whole": ("{unit} with evaluation", "{unit} 含评测"),
    "of_synthetic": ("of synthetic", "相对合成数据"),
    "speedup_time": ("speedup by time", "加速比（时间）"),
    "speedup_throughput": ("speedup by throughput", "加速比（吞吐量）"),
    "in_epoch": ("epoch {epoch}", "第 {epoch} 个 epoch"),
    "seeds_from_higher": (", lowest {worst}", "，最低 {worst}"),
    "seeds_from_lower": (", highest {worst}", "，最高 {worst}"),
    "to_target": ("to {target}", "达到 {target}"),
    "not_reached": ("{target} not reached", "未达到 {target}"),
    "training": ("Evaluations and loss", "评测与损失"),
    "training_note": (
        "Every seed of the case. Above, what the evaluations gave (dotted: all but the first metric), the"
        " target dashed and the crossing ringed; below, the training loss, as means over stretches of steps.",
        "该用例的全部种子。上图为评测结果（点线为首个指标以外的指标），虚线为目标，圆圈为达标处；"
        "下图为训练损失，取分段平均。",
    ),
    "by_time": ("Time", "时间"),
    "by_steps": ("Steps", "步数"),
    "axis_time_s": ("seconds since the run started", "开始后的秒数"),
    "axis_time_min": ("minutes since the run started", "开始后的分钟数"),
    "axis_time_h": ("hours since the run started", "开始后的小时数"),
    "axis_loss": ("loss", "损失"),
    "target_line": ("target {target}", "目标 {target}"),
    "floor_line": ("lowest possible {floor}", "理论下限 {floor}"),
    "seed": ("seed", "种子"),
    "crossed": ("reached after {time}, epoch {epoch}", "{time} 后达标，第 {epoch} 个 epoch"),
    "method_finish": (
        "Trials of a training differ in their seed. Their times to train are summed up by the median with an"
        " interval from order statistics over the seeds.",
        "同一训练的各次试验仅种子不同；其训练时间取中位数，区间由各种子的次序统计量给出。",
    ),
    "light": ("Speed of light", "光速"),
    "light_note": (
        "A share of 100 % is what one device does with our own fused training step: {references}.",
        "100 % 指单个设备运行我们自己的融合训练步所达到的速度：{references}。",
    ),
    "light_reference": (
        "{rate} {unit} on {device} ({workload}, {axes}, {precision}, batch {batch}, Trainmark {version},"
        " {date})",
        "{device} 上 {rate} {unit}（{workload}，{axes}，{precision}，批量 {batch}，Trainmark {version}，"
        "{date}）",
    ),
    "light_join": ("; ", "；"),
    "light_half": ("amp or bf16", "amp 或 bf16"),
    "rate_a_device": ("{unit}/s a device", "{unit}/s 单设备"),
    "light_share": ("share of light", "占光速之比"),
    "steps": ("Step times", "单步耗时"),
    "steps_note": (
        "The median trial of a case. The shaded steps are outside the window and do not count.",
        "取该用例的中位试验。阴影部分在统计窗口之外，不计入结果。",
    ),
    "spread": ("Spread of the trials", "试验离散度"),
    "spread_note": (
        "Each dot is one trial, relative to its case's median; the bar is the interval of the median.",
        "每个点为一次试验，以该用例中位数为基准；横条为中位数的区间。",
    ),
    "samples": ("Devices during the trial", "试验期间的设备状态"),
    "samples_note": (
        "Read from outside the workload during that same trial; host-wide figures count every process.",
        "在同一次试验中从训练进程之外读取。“整机”包括主机上的所有进程。",
    ),
    "environment": ("Environment", "环境"),
    "cluster": ("Cluster", "集群"),
    "host": ("Host", "主机"),
    "devices": ("Devices", "设备"),
    "topology": ("Topology", "拓扑"),
    "libraries": ("Libraries", "库"),
    "fabric": ("Fabric", "互连网络"),
    "software": ("Software", "软件"),
    "git": ("Source", "源代码"),
    "container": ("Container", "容器"),
    "host_wide": ("{device} (host-wide)", "{device}（整机）"),
    "missing_count": ("{count} facts were not found", "{count} 项未找到"),
    "missing_fact": ("not found", "未找到"),
    "yes": ("yes", "是"),
    "no": ("no", "否"),
    "method": ("Method", "方法"),
    "method_figure": (
        "Throughput is samples divided by wall time over the steady window of a trial, from boundaries at"
        " which the device had finished; it is never a mean of per-step rates.",
        "吞吐量等于稳定窗口内的样本数除以墙钟时间，窗口边界处设备均已同步；从不使用逐步速率的平均值。",
    ),
    "method_trials": (
        "Each trial is a fresh process. A result is the median over its trials (here {trials} a result) with"
        " an interval for that median; where the trials carry less than 95 % confidence, that stands beside"
        " the interval.",
        "每次试验都是全新进程。结果为各次试验（此处每项 {trials} 次）的中位数及其区间；置信度不足 95 % 时，"
        "会在区间旁注明实际置信度。",
    ),
    "method_warmup": (
        "Warm-up ends where a change point in the step times says so (here after {warmup} steps), not after a"
        " fixed count.",
        "预热在单步耗时的变点处结束（此处为 {warmup} 步之后），而非固定步数。",
    ),
    "method_speedup": (
        "Speed-up compares with the one-device result of the same case, and efficiency is speed-up divided by"
        " the device count; without that baseline both are n/a.",
        "加速比以同一用例的单卡结果为基准，扩展效率等于加速比除以设备数；缺少该基准时均为 n/a。",
    ),
    "method_doubts": (
        "Doubts are reasons not to take a figure at its word; each says what to do about it.",
        "存疑项说明为何不应直接采信某个数字，并给出处理建议。",
    ),
    "commands": ("Commands to repeat", "复现命令"),
    "run_command": ("The whole run", "整个测试"),
    "case_command": ("Rank 0 of one trial", "单次试验的 rank 0 命令"),
    "commands_differ": (
        "{count} different commands; the first is shown, the JSON report holds all.",
        "共 {count} 条不同命令；此处仅显示第一条，其余见 JSON 报告。",
    ),
    "suite": ("Suite", "测试配置"),
    "copy_button": ("Copy", "复制"),
    "copied": ("Copied", "已复制"),
    "selected": ("Selected", "已选中"),
    "every_trial": ("Every trial", "全部试验"),
    "trial_files": (
        "Logs, events and figures of each trial lie beside this report in `trials/`.",
        "每次试验的日志、事件与数据在本报告旁的 `trials/` 中。",
    ),
    "failed": ("Failed and skipped", "失败与跳过"),
    "none_failed": ("Nothing failed and nothing was skipped.", "没有失败或跳过的用例。"),
    "case": ("case", "用例"),
    "repeat": ("repeat", "序号"),
    "repeats": ("repeats", "序号"),
    "outcome": ("outcome", "结局"),
    "reason": ("reason", "原因"),
    "interval": ("interval", "区间"),
    "no_interval": ("no interval", "无区间"),
    "within": ("interval within the trial", "试验内区间"),
    "speedup": ("speedup", "加速比"),
    "memory": ("memory (GiB)", "显存/内存 (GiB)"),
    "warmup": ("warm-up steps", "预热步数"),
    "retries": ("retries", "重试"),
    "doubts": ("doubts", "存疑"),
    "nodes": ("nodes", "节点"),
    "device_count": ("devices", "设备数"),
    "step_p50": ("step p50", "单步 p50"),
    "first_step": ("first step", "首步"),
    "data_wait": ("data wait", "等待数据"),
    "per_joule": ("{unit}/J", "{unit}/J"),
    "mfu": ("MFU", "MFU"),
    "memory_share": ("memory", "显存带宽"),
    "hfu": ("HFU", "HFU"),
    "memory_roofline": ("of the memory roofline", "占内存带宽上限"),
    "energy": ("energy a {unit}", "每 {unit} 能耗"),
    "exact_count": ("exact", "精确计数"),
    "gigaflop_of": ("GFLOP a {unit}", "每 {unit} 的 GFLOP"),
    "arithmetic": ("Arithmetic, memory and energy", "算力、内存与能耗"),
    "arithmetic_note": (
        "MFU counts every matrix product of the model once, and causal attention as it is computed; HFU adds"
        " what activation recomputation computes again. The peak is that of a large matrix product, measured"
        " in the run where the ranks did.",
        "MFU 将模型的每个矩阵乘计一次，因果注意力按实际计算量计；HFU 另计激活重计算的部分。"
        "峰值为大矩阵乘的速率，由本次运行实测（若各 rank 有测）。",
    ),
    "conventions": ("What other codes would call the MFU of this run", "其他代码对本次运行给出的 MFU"),
    "conventions_note": (
        "The same throughput and peak with the FLOP that each code counts; nanoGPT divides by 312 TFLOP/s, an"
        " A100's, on every device.",
        "吞吐量与峰值相同，FLOP 按各代码自己的方式计数；nanoGPT 在任何设备上都除以 A100 的 312 TFLOP/s。",
    ),
    "axis_devices": ("devices", "设备数"),
    "axis_batch_per_device": ("batch per device", "每设备批量"),
    "axis_threads": ("threads", "线程数"),
    "by_axis": ("Throughput by {axis}", "吞吐量与{axis}"),
    "axis_step": ("step", "步"),
    "axis_step_time": ("step time (ms)", "单步耗时 (ms)"),
    "axis_deviation": ("deviation from the median (%)", "相对中位数的偏差 (%)"),
    "ratio": ("ratio", "比值"),
    "contrast": ("Compared with the baseline", "与基准比较"),
    "contrast_verdict": ("verdict", "结论"),
    "contrast_baseline": ("baseline", "基准"),
    "contrast_faster": ("faster", "更快"),
    "contrast_slower": ("slower", "更慢"),
    "contrast_same": ("the same", "相同"),
    "contrast_undecided": ("not certain", "不确定"),
    "contrast_certain": (
        "{case} is {ratio} × {baseline} {bounds}, certain after {pairs} pairs.",
        "{case} 是 {baseline} 的 {ratio} 倍 {bounds}，{pairs} 对试验后已确定。",
    ),
    "contrast_as_fast": (
        "{case} is as fast as {baseline}: {ratio} × {bounds}, no difference larger than {largest}, certain"
        " after {pairs} pairs.",
        "{case} 与 {baseline} 一样快：{ratio} 倍 {bounds}，差异不超过 {largest}，{pairs} 对试验后已确定。",
    ),
    "contrast_open": (
        "{case} is {ratio} × {baseline} {bounds} after {pairs} pairs: not certain, but no difference larger"
        " than {largest}.",
        "{case} 是 {baseline} 的 {ratio} 倍 {bounds}（{pairs} 对试验）：尚不确定，但差异不超过 {largest}。",
    ),
    "contrast_few": (
        "{case} is {ratio} × {baseline}, without an interval: too few pairs ({pairs}), {needed} or more say"
        " something.",
        "{case} 是 {baseline} 的 {ratio} 倍，没有区间：{pairs} 对试验太少，至少需要 {needed} 对。",
    ),
    "contrast_none": (
        "{case} has no ratio to {baseline}: {failed} gave no figure ({reason}).",
        "{case} 与 {baseline} 没有比值：{failed} 没有结果（{reason}）。",
    ),
    "contrast_not_run": ("it did not run", "未运行"),
    "contrast_doubts": (" In doubt: {doubts}.", "存疑：{doubts}。"),
    "contrast_note": (
        "The trials of a round take turns in random order. A ratio is certain once bets on the signs of the"
        " differences, looked at after every pair, have grown enough (Ville 1939); {confidence} holds for all"
        " ratios and looks together.",
        "每轮试验以随机顺序交替进行。每对试验之后都检查：对差异符号的下注增长到足够大时，比值即为确定"
        "（Ville 1939）；{confidence} 的置信度对所有比值与所有检查同时成立。",
    ),
    "cost": ("Cost", "成本"),
    "cost_note": (
        "At {price}, for the hours of steady training alone: start-up, evaluation and idle time are left out"
        " but for the cost to the target, which counts all of it. Energy is that of the devices, and of the"
        " processors where those report it.",
        "按 {price} 计，只含稳定训练的时间，不含启动、评测与空闲；达标成本则全部计入。"
        "能耗为设备的能耗，处理器有读数时一并计入。",
    ),
    "cost_per_million": ("cost per million samples", "每百万样本成本"),
    "cost_to_target": ("cost to the target", "达标成本"),
    "cost_kwh_per_million": ("kWh per million samples", "每百万样本能耗 (kWh)"),
    "devices_left_out": ("{count} more devices are not drawn", "另有 {count} 个设备未画出"),
    "axis_seconds": ("seconds since the trial began", "试验开始后的秒数"),
    "median": ("median", "中位数"),
    "ideal": ("ideal", "理想"),
    "off_scale": ("up to {longest} outside the window", "窗口之外最长 {longest}"),
    "linear": ("Linear", "线性"),
    "log_log": ("Log–log", "双对数"),
    "log": ("Log", "对数"),
    "window": ("Window", "窗口"),
    "everything": ("Everything", "全部"),
    "utilisation": ("utilisation (%)", "利用率 (%)"),
    "power": ("power (W)", "功耗 (W)"),
    "temperature": ("temperature (°C)", "温度 (°C)"),
    "clock": ("clock (MHz)", "频率 (MHz)"),
    "memory_used": ("memory (GiB)", "显存/内存 (GiB)"),
    "series": ("Series", "系列"),
}

OUTCOMES: dict[str, tuple[str, str]] = {
    "ok": ("ok", "成功"),
    "oom": ("oom", "显存/内存不足"),
    "timeout": ("timeout", "超时"),
    "hung": ("hung", "挂起"),
    "crashed": ("crashed", "崩溃"),
    "interrupted": ("interrupted", "中断"),
    "skipped": ("skipped", "跳过"),
    "invalid": ("invalid", "无效"),
    "lost": ("lost", "节点丢失"),
    "damaged": ("damaged", "损坏"),
}


def words(lang: Lang) -> dict[str, str]:
    """The words of one language by their name."""
    column = LANGUAGES.index(lang)
    return {name: pair[column] for name, pair in WORDS.items()}


def outcome_name(outcome: str, lang: Lang) -> str:
    pair = OUTCOMES.get(outcome)
    return pair[LANGUAGES.index(lang)] if pair else outcome


def translated(text: str, lang: Lang, sentences: Sentences) -> str:
    """Write a sentence anew with the same values where it fits a template; else it stays in English."""
    if lang == "en":
        return text
    for pattern, chinese in _patterns(sentences):
        if match := pattern.fullmatch(text):
            return chinese.format(**match.groupdict())
    return text


@cache
def _patterns(sentences: Sentences) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Templates with the most text of their own first: a value may not swallow what another template says."""
    ordered = sorted(sentences, key=lambda pair: -sum(len(text) for text, *_ in Formatter().parse(pair[0])))
    return tuple((re.compile(_pattern(english), re.DOTALL), chinese) for english, chinese in ordered)


def _pattern(template: str) -> str:
    pattern, named = "", set()
    for text, name, *_ in Formatter().parse(template):
        # A blank that comes again stands for the same text.
        blank = "" if not name else f"(?P={name})" if name in named else f"(?P<{name}>.+?)"
        pattern += re.escape(text) + blank
        named.add(name)
    return pattern
