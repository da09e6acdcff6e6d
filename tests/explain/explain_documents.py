"""Explanations as `trainmark explain` makes them, for tests of what is shown."""

import random
from dataclasses import replace

from trainmark.explain.difference import Contribution, ExplanationDifference
from trainmark.explain.explanation import (
    Advice,
    Agreement,
    ClassTime,
    CollectiveBucket,
    ExplainedSubject,
    Explanation,
    IdleTime,
    Kernel,
    MeasuredPeaks,
    Memory,
    MemoryPart,
    ModuleTime,
    Overlap,
    RankTime,
    Timeline,
    TimelineSpan,
    Verified,
    WhatIf,
)

GIB = 2**30
STEPS = 5
STEP = 70_312_347  # ns
FPROP = "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x128_32x3_nhwc>"
DGRAD = (
    "sm90_xmma_dgrad_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1"
)
WGRAD = "sm90_xmma_wgrad_implicit_gemm_indexed_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_cudnn"
NORM = (
    "void cudnn::bn_fw_tr_1C11_kernel_NHWC<__nv_bfloat16, float, float, int, 512, true, 1>(cudnnTensorStruct)"
)
NORM_BACK = "void cudnn::bn_bw_1C11_kernel_new<__nv_bfloat16, float, float2, 512, true, 1>(float, float)"
RELU = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::launch_clamp(at"
    "::TensorIteratorBase&, c10::Scalar, c10::Scalar)::{lambda()#1}, std::array<char*, 2ul> >(int, ...)"
)
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, ...>"
SGD = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<3>, ...>"
GEMM = "nvjet_tst_64x8_64x16_4x1_v_bz_TNT"
MEAN = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::BFloat16, ...> >(...)"
MAXPOOL = "void at::native::max_pool_forward_nhwc<c10::BFloat16, int>(...)"
COPY = "Memcpy HtoD (Pinned -> Device)"
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def resnet50() -> Explanation:
    """ResNet-50 of batch 256 on one H200 in eager mode."""
    total = STEPS * STEP
    share = {
        "convolution": 0.602,
        "normalisation": 0.151,
        "elementwise": 0.121,
        "optimiser": 0.052,
        "reduction": 0.024,
        "copy": 0.014,
        "matrix product": 0.009,
        "other": 0.006,
    }
    alone = {name: int(part * total) for name, part in share.items()}
    overlap = int(0.001 * total)
    launch = total - sum(alone.values()) - overlap - int(0.004 * total)
    works = {
        # TFLOP, GB, floor in ms, bound: of one step
        "convolution": (3.15, 31.2, 19.8, "memory"),
        "normalisation": (0.021, 21.5, 5.2, "memory"),
        "elementwise": (0.004, 28.1, 6.8, "memory"),
        "optimiser": (0.0002, 0.51, 0.124, "memory"),
        "reduction": (0.0004, 1.62, 0.39, "memory"),
        "matrix product": (0.0032, 0.04, 0.011, "memory"),
    }
    kernels = {
        "convolution": ((FPROP, 0.36, 53), (DGRAD, 0.33, 52), (WGRAD, 0.31, 53)),
        "normalisation": ((NORM_BACK, 0.57, 53), (NORM, 0.43, 53)),
        "elementwise": ((RELU, 0.62, 98), (ADD, 0.38, 32)),
        "optimiser": ((SGD, 1.0, 42),),
        "reduction": ((MEAN, 1.0, 4),),
        "copy": ((COPY, 1.0, 3),),
        "matrix product": ((GEMM, 1.0, 3),),
        "other": ((MAXPOOL, 1.0, 2),),
    }
    classes = []
    for name, time in alone.items():
        flop, moved, floor, bound = works.get(name, (None, None, None, None))
        classes.append(
            ClassTime(
                name,
                alone=time,
                busy=time + (overlap if name in ("copy", "convolution") else 0),
                launches=STEPS * sum(count for _, _, count in kernels[name]),
                flop=None if flop is None else STEPS * flop * 1e12,
                bytes=None if moved is None else STEPS * moved * 1e9,
                floor=None if floor is None else int(STEPS * floor * 1e6),
                bound=bound,
                kernels=tuple(
                    Kernel(kernel, int(part * time), STEPS * count) for kernel, part, count in kernels[name]
                ),
            )
        )
    return Explanation(
        subject=ExplainedSubject(
            "ResNet-50, bf16, batch 256", "NVIDIA H200", "PyTorch 2.11, eager", 256.0, "images"
        ),
        steps=STEPS,
        total=total,
        agreement=Agreement(profiled=STEP / 1e9, measured=0.070118),
        peaks=MeasuredPeaks(flops=7.41e14, bandwidth=4.13e12),
        classes=tuple(classes),
        overlaps=(Overlap(("convolution", "copy"), overlap),),
        idle=(
            IdleTime(
                "launch", launch, 211, ("The host launches a kernel every 6.1 µs; 211 kernels ran shorter.",)
            ),
            IdleTime(
                "synchronisation", int(0.004 * total), 5, ("cudaStreamSynchronize at train.py(31), 5 times",)
            ),
        ),
        modules=(
            ModuleTime("layer1", int(0.09 * total), int(0.17 * total), STEPS * 112),
            ModuleTime("layer2", int(0.07 * total), int(0.15 * total), STEPS * 140),
            ModuleTime("layer3", int(0.06 * total), int(0.13 * total), STEPS * 196),
            ModuleTime("layer4", int(0.03 * total), int(0.08 * total), STEPS * 104),
            ModuleTime("conv1", int(0.03 * total), int(0.05 * total), STEPS * 4),
        ),
        what_ifs=what_ifs(),
        advice=advice(),
        memory=Memory(
            peak=int(23.4 * GIB),
            reserved=int(25.1 * GIB),
            parts=(
                MemoryPart("activations", int(16.2 * GIB), "layer1", "checkpointing layer1 frees 11.9 GiB"),
                MemoryPart("activations", int(5.1 * GIB), "layer2"),
                MemoryPart("weights", int(0.1 * GIB)),
                MemoryPart("gradients", int(0.1 * GIB)),
                MemoryPart("optimizer", int(0.2 * GIB)),
                MemoryPart("other", int(1.7 * GIB), "workspaces and temporaries"),
                MemoryPart("fragmentation", int(1.7 * GIB), "reserved by the allocator, in no tensor"),
            ),
            suggestions=("Batch 128 would need 12.1 GiB.",),
        ),
        timeline=timeline(),
        notes=("Of 2.1 % of the kernels the operands are unknown; their FLOP and bytes are not counted.",),
        overhead=0.008,
        facts={"precision": "bf16", "layout": "channels_last"},
    )


def what_ifs() -> tuple[WhatIf, ...]:
    ours = "12 verified predictions of all changes on cuda"
    return (
        WhatIf(
            "compile", "compile the model", 0.0551, 0.0525, 0.0578, "--compiler compile",
            "Elementwise and normalisation kernels fuse with their producers and reach 1.2 × their floor.",
            ours, Verified(0.0548, 0.0546, 0.0551, 6),
        ),
        WhatIf(
            "graph", "capture the step as a CUDA graph", 0.0692, 0.0688, 0.0697, "--compiler graph",
            "The host no longer launches kernels: idle time by launches goes.", ours,
            Verified(0.0689, 0.0688, 0.0691, 6),
        ),
        WhatIf(
            "fused_optimizer", "a fused optimiser", 0.0668, 0.0664, 0.0673,
            "torch.optim.SGD(..., fused=True)", "42 launches become 2 at 1.3 × the floor.", ours,
        ),
        WhatIf(
            "floor", "every class at its floor", 0.0349, 0.0349, 0.0349, "",
            "The sum of the floors and of what has none.", ours,
        ),
    )  # fmt: skip


def advice() -> tuple[Advice, ...]:
    return (
        Advice(
            "compile",
            "A compiler fuses chains of elementwise operations and normalisations.",
            *(27.3, 21.3, 33.6),
            "trainmark run resnet50 --set compile=true",
        ),
        Advice(
            "optimiser",
            "The optimiser takes 42 launches and 3.66 ms a step: it is not fused.",
            *(5.0, 4.2, 5.6),
            "torch.optim.SGD(parameters, lr, fused=True)",
        ),
        Advice(
            "graph",
            "A captured step needs no launches.",
            *(1.3, 0.6, 1.9),
            "trainmark run resnet50 --set cuda_graph=true",
        ),
    )


def timeline(steps: int = STEPS, a_step: int = 800, streams: tuple[str, ...] = ("stream 7",)) -> Timeline:
    """Kernels in the order of a training step: forward, backward, optimiser."""
    draw = random.Random(7)
    forward = [(FPROP, "convolution", 120), (NORM, "normalisation", 60), (RELU, "elementwise", 25)]
    backward = [(RELU, "elementwise", 40), (NORM_BACK, "normalisation", 75), (DGRAD, "convolution", 110)]
    backward.append((WGRAD, "convolution", 100))
    spans, bounds, now = [], [], 0
    for _ in range(steps):
        begin = now
        spans.append(TimelineSpan("stream 20 (copies)", COPY, "copy", now + 2_000, now + 902_000))
        for place in range(a_step - 2):
            pattern = forward if place < 0.3 * a_step else backward if place < 0.94 * a_step else None
            name, kind, mean = pattern[place % len(pattern)] if pattern else (SGD, "optimiser", 74)
            length = int(mean * 950 * draw.uniform(0.4, 1.8))
            spans.append(TimelineSpan(streams[0], name, kind, now, now + length))
            now += length + (draw.randint(500, 1_500) if draw.random() < 0.8 else 9_000)
            if len(streams) > 1 and pattern is backward and place % 60 == 0:
                spans.append(TimelineSpan(streams[1], REDUCE, "communication", now, now + 1_900_000))
        spans.append(TimelineSpan(streams[0], GEMM, "matrix product", now, now + 30_000))
        now += 31_000
        bounds.append((begin, now))
    return Timeline(tuple(bounds), tuple(spans), thinned=12 * steps)


def refused() -> Explanation:
    """The profiler slowed the step down by a tenth."""
    sentence = (
        "the profiled step takes 10.3 % longer than the one timed without the profiler; profile fewer steps."
    )
    whole = resnet50()
    return replace(
        whole,
        agreement=Agreement(0.07735, 0.070118, refusal=sentence),
        what_ifs=(),
        advice=(),
        timeline=timeline(2, 200),
    )


def two_ranks() -> Explanation:
    """The same on two nodes over a slow link: the gradients are not hidden."""
    one = resnet50()
    total = one.total + STEPS * 31_000_000
    hidden = STEPS * 9_000_000
    classes = list(one.classes)
    convolution = next(place for place, own in enumerate(classes) if own.name == "convolution")
    own = classes[convolution]
    classes[convolution] = replace(own, alone=own.alone - hidden)
    classes.append(
        ClassTime(
            "communication", alone=STEPS * 31_000_000, busy=STEPS * 40_000_000, launches=STEPS * 5,
            bytes=STEPS * 102.2e6, floor=STEPS * 32_600_000, bound="link",
            kernels=(Kernel(REDUCE, STEPS * 40_000_000, STEPS * 5),),
        )
    )  # fmt: skip
    return replace(
        one,
        subject=replace(one.subject, samples=512.0, world_size=2, title="ResNet-50, bf16, batch 256, 2n1g"),
        total=total,
        agreement=Agreement(total / STEPS / 1e9, 0.1009),
        peaks=MeasuredPeaks(7.41e14, 4.13e12, 3.13e9),
        classes=tuple(classes),
        overlaps=(*one.overlaps, Overlap(("communication", "convolution"), hidden)),
        what_ifs=(),
        advice=(
            Advice(
                "communication", "Hide or shrink the communication: 31.0 ms of 40.0 ms are exposed.",
                44.0, 39.0, 47.0,
                "torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)\n"
                "model.register_comm_hook(None, default_hooks.bf16_compress_hook)",
            ),
        ),
        ranks=(
            RankTime(0, "node-a", 0.1013, 0.0689, 0.031, 0.009, 0.0014, 0.0002),
            RankTime(1, "node-b", 0.1013, 0.0711, 0.0288, 0.009, 0.0014, 0.0024),
        ),
        buckets=tuple(
            CollectiveBucket(f"all-reduce {place}", size, seconds, exposed, size / seconds)
            for place, (size, seconds, exposed) in enumerate(
                ((8_200_000, 0.0031, 0.0), (26_200_000, 0.0099, 0.004), (26_200_000, 0.0102, 0.0102),
                 (26_200_000, 0.0101, 0.0101), (15_400_000, 0.0067, 0.0067)), 1,
            )
        ),
        timeline=timeline(3, 300, ("stream 7", "stream 27 (NCCL)")),
    )  # fmt: skip


def cpu() -> Explanation:
    """A miniature on a CPU: operators in place of kernels, no peaks."""
    operators = {
        "convolution": ("aten::convolution_backward", 0.55),
        "normalisation": ("aten::native_batch_norm", 0.20),
        "elementwise": ("aten::threshold_backward", 0.12),
        "other": ("autograd::engine::evaluate_function", 0.08),
    }
    total = 3 * 612_345_679
    alone = {name: int(share * total) for name, (_, share) in operators.items()}
    return Explanation(
        subject=ExplainedSubject("train.py", "Neoverse-N1, 2 threads", "PyTorch 2.11"),
        steps=3,
        total=total,
        agreement=Agreement(total / 3e9, None),
        classes=tuple(
            ClassTime(name, time, time, 3 * 53, kernels=(Kernel(operators[name][0], time, 3 * 53),))
            for name, time in alone.items()
        ),
        idle=(
            IdleTime("loader", total - sum(alone.values()), 3, ("next batch waits 30.6 ms in every step",)),
        ),
        timeline=Timeline(
            ((0, total // 3),),
            (TimelineSpan("thread 1", "aten::convolution_backward", "convolution", 0, total // 4),),
        ),
        notes=("Times are of operators, nested ones taken out.",),
    )


def hostile() -> Explanation:
    """Names that would leave their place if they were not escaped."""
    name = "</script><img src=x onerror=alert(1)>|`*\x1b[31m"
    whole = cpu()
    return replace(
        whole,
        subject=replace(whole.subject, title=name, device=name, framework=name),
        idle=(replace(whole.idle[0], evidence=(name,)),),
        advice=(Advice(name, name, 1.0, 0.5, 2.0, name),),
        timeline=Timeline(((0, 100),), (TimelineSpan(name, name, name, 0, 50),)),
        classes=tuple(replace(own, kernels=(Kernel(name, own.alone, 3),)) for own in whole.classes),
        notes=(name,),
        facts={name: name},
    )


def difference(per: str = "step") -> ExplanationDifference:
    """Eager against compiled: every change in its class."""
    eager = {
        ("convolution", "class"): (0.0423, 0.0411),
        ("normalisation", "class"): (0.0106, 0.0067),
        ("elementwise", "class"): (0.0085, 0.0021),
        ("optimiser", "class"): (0.0037, 0.0012),
        ("reduction", "class"): (0.0017, 0.0029),
        ("launch", "idle"): (0.0011, 0.0004),
        ("convolution+copy", "overlap"): (0.0001, 0.0001),
        ("rest", "rest"): (0.0021, 0.0003),
    }
    contributions = tuple(
        Contribution(name, kind, before, after, after - before)
        for (name, kind), (before, after) in eager.items()
    )
    one = resnet50().subject
    return ExplanationDifference(
        a=one,
        b=replace(one, framework="PyTorch 2.11, compiled"),
        seconds_a=sum(own.seconds_a for own in contributions),
        seconds_b=sum(own.seconds_b for own in contributions),
        per=per,
        contributions=contributions,
        notes=("Both ran on the same device, one after the other.",),
    )
