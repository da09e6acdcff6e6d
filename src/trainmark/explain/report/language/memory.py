"""Sentences on what holds the memory, in Chinese, by the English template that made them."""

from __future__ import annotations

from trainmark.report.format.words import Sentences

MEMORY_SENTENCES: Sentences = (
    # What is known of a holder
    ("buckets of DDP, beside the gradients", "DDP 的梯度桶，另计于梯度之外"),
    ("half-precision copies by autocast", "autocast 的半精度副本"),
    (
        "of CUDA graphs, with their temporaries: by module they are not known at a replay",
        "CUDA graph 所持，含临时张量：回放时无法按模块区分",
    ),
    ("other modules", "其他模块"),
    ("outside of modules", "模块之外"),
    ("compiled graph", "编译图"),
    ("compiled graph of {module}", "{module} 的编译图"),
    ("cross_entropy of {module}", "{module} 的 cross_entropy"),
    ("reserved by the allocator, in no tensor", "分配器保留，不属于任何张量"),
    (
        "interpreter, libraries, temporaries and the profiler",
        "解释器、库、临时张量与分析器",
    ),
    (
        "activations, workspaces and temporaries: no tensor was seen being saved for backward",
        "激活、工作区与临时张量：未见为反向保存的张量",
    ),
    ("workspaces and temporaries", "工作区与临时张量"),
    # What would free some of it
    ("checkpointing frees {freed}", "激活重计算可释放 {freed}"),
    ("half the batch frees {freed}", "批量减半可释放 {freed}"),
    ("a smaller optimizer state frees {freed}", "更小的优化器状态可释放 {freed}"),
    ("a fused head and loss frees {freed}", "融合的输出层与损失可释放 {freed}"),
    ("sharding frees {freed}", "分片可释放 {freed}"),
    (
        "Half the batch frees {freed}: half of the activations, {known}.",
        "批量减半可释放 {freed}：即激活 {known} 的一半。",
    ),
    (
        "Activation checkpointing of the {count} modules {pattern} ({type}) frees {freed}: they save {saved},"
        " of which {inputs} of inputs and one module's {largest} remain; their forward pass is computed"
        " twice.",
        "对 {count} 个模块 {pattern}（{type}）做激活重计算可释放 {freed}：它们保存 {saved}，"
        "其中输入 {inputs} 与单个模块的 {largest} 仍保留；其前向计算两次。",
    ),
    ("Then the optimizer's update is the peak.", "此后峰值出现在优化器更新时。"),
    (
        "Moments in half of their precision (8 bits: three quarters), or one moment as SGD has it, free"
        " {freed} of the optimizer's {state}.",
        "矩以一半精度保存（8 位则省四分之三），或如 SGD 只保留一个矩，可释放优化器 {state} 中的 {freed}。",
    ),
    (
        "A head with a fused cross entropy, which computes the logits in pieces, frees at least {freed} that"
        " the loss saves.",
        "输出层改用融合的交叉熵，分块计算 logits，至少可释放损失保存的 {freed}。",
    ),
    (
        "FSDP over {ranks} ranks frees {freed} on each, less the layer that is gathered: weights, gradients"
        " and optimizer, {state}, are spread over them.",
        "{ranks} 个 rank 的 FSDP 在每个 rank 上可释放 {freed}，减去正在聚合的一层："
        "权重、梯度与优化器共 {state}，分散在各 rank 上。",
    ),
    ("The program did not look at its memory.", "程序未观察其内存。"),
    ("The program did not tell the peak of its memory.", "程序未给出内存峰值。"),
)
