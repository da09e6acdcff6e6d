"""Logs of today's trainers as their print statements make them, at a known speed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

REPORTS = 40


@dataclass(frozen=True)
class Written:
    """A log, and what it should say: `samples` a second in `unit`, or only `steps` a second."""

    text: str
    samples: float | None
    unit: str = "samples"
    steps: float | None = None


def clock(seconds: float) -> str:
    whole = int(seconds)
    return (
        f"2024-05-14 {whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d},{seconds % 1 * 1000:03.0f}"
    )


Line = Callable[[int, float], str]
LOGS: dict[str, Callable[[float], Written]] = {}


def trainer(
    name: str, samples: float | None, unit: str = "samples", *, head: str = "", tail: str = ""
) -> Callable[[Line], Callable[[float], Written]]:
    """Declare a trainer by its report number n of steps of s seconds; without `samples` it tells none."""

    def declared(line: Line) -> Callable[[float], Written]:
        def log(seconds: float) -> Written:
            text = head + lines(line, seconds) + tail
            per_second = samples / seconds if samples else None
            return Written(text, per_second, unit, None if samples else 1 / seconds)

        LOGS[name] = log
        return log

    return declared


def lines(one: Line, seconds: float) -> str:
    """A line a report, number 1 and on; times differ by a thousandth, as they do."""
    return "".join(one(n, seconds * jitter(n)) + "\n" for n in range(1, REPORTS + 1))


def jitter(n: int) -> float:
    return 1 + 0.001 * (n % 3)


@trainer("megatron", 128, head="using world size: 16, data-parallel-size: 2, tensor-model-parallel size: 8\n")
def megatron(n: int, s: float) -> str:
    return (
        f" [{clock(3600 + 10 * n * s)[:19]}] iteration {10 * n:8d}/  500000 | consumed samples: {n} | "
        f"elapsed time per iteration (ms): {1000 * s:.1f} | learning rate: 1.5E-04 | global batch "
        f"size:   128 | "
        f"lm loss: {9 - n / 20:.6E} | loss scale: 1.0 | grad norm: 1.2 | number of nan iterations:   0 |"
    )


@trainer("deepspeed", 256)
def deepspeed(n: int, s: float) -> str:
    return (
        f"[{clock(3600 + 10 * n * s)}] [INFO] [timer.py:260:stop] epoch=0/micro_step={40 * n}/"
        f"global_step={10 * n}, RunningAvgSamplesPerSec={200.0}, CurrSamplesPerSec={256 / s:.6f}, "
        f"MemAllocated=1GB"
    )


@trainer("nanogpt", 491_520, "tokens", head="tokens per iteration will be: 491,520\n")
def nanogpt(n: int, s: float) -> str:
    evaluated = f"step {10 * n}: train loss 3.1, val loss 3.2\n" if n % 10 == 0 else ""
    s = 20 * s if evaluated else s
    return f"{evaluated}iter {10 * n}: loss {9 - n / 20:.4f}, time {1000 * s:.2f}ms, mfu 40.00%"


@trainer(
    "llm.c",
    1_048_576,
    "tokens",
    head="batch_size B=16 * seq_len T=1024 * num_processes=8 and total_batch_size=1048576\n",
)
def llmc(n: int, s: float) -> str:
    return (
        f"step {n:4d}/32000 | loss {9 - n / 20:.6f} (+nanz)| norm 1.0 (+nanz)| lr 8.57e-07 | "
        f"{1000 * s:.2f} ms | 42.6% bf16 MFU | {1048576 / s:.0f} tok/s"
    )


@trainer("modded-nanogpt", None, "tokens")
def modded_nanogpt(n: int, s: float) -> str:
    return f"step:{n}/5100 train_loss:5.1 train_time:{1000 * n * s / jitter(n):.0f}ms step_avg:1ms"


@trainer(
    "torchtitan",
    8 * 8192,
    "tokens",
    head="[titan] - root - INFO - Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]\n",
)
def torchtitan(n: int, s: float) -> str:
    return (
        f"[titan] {clock(3600 + 10 * n * s)} - root - INFO - step: {10 * n}  loss: {9 - n / 20:.4f}  "
        f"grad_norm: 1.2  memory: 68.57GiB(86.69%)  tps: {8192 / s:,.0f}  tflops: 300.10  mfu: 39.73%"
    )


@trainer("nemo", 512)
def nemo(n: int, s: float) -> str:
    return (
        f"Training epoch 0, iteration {n}/999 | lr: 4.498e-06 | global_batch_size: 512 | global_step: "
        f"{n} | reduced_train_loss: {9 - n / 20:.3f} | train_step_timing in s: {s:.4f} | "
        f"consumed_samples: {512 * n}"
    )


@trainer("maxtext", 262_144, "tokens")
def maxtext(n: int, s: float) -> str:
    return (
        f"completed step: {n + 1}, seconds: {s:.3f}, TFLOP/s/device: 135.1, Tokens/s/device: "
        f"{65536 / s:.3f}, total_weights: 262144, loss: {9 - n / 20:.3f}"
    )


@trainer(
    "litgpt",
    8,
    head="{'devices': 2, 'num_nodes': 1, 'train': TrainArgs(global_batch_size=16, micro_batch_size=4)}\n",
)
def litgpt(n: int, s: float) -> str:
    return (
        f"Epoch 1 | iter {n} step {n // 2} | loss train: {9 - n / 20:.3f}, val: n/a | iter time: "
        f"{1000 * s:.2f} ms{' (step)' if n % 2 == 0 else ''}"
    )


@trainer("olmo", 524_288, "tokens")
def olmo(n: int, s: float) -> str:
    return (
        f"{clock(3600 + 10 * n * s).replace(',', '.')}\thost:0\tolmo.train:990\tINFO\t"
        f"[step={10 * n}/10000,epoch=0]\n    train/CrossEntropyLoss={9 - n / 20:.3f}\n    "
        f"throughput/total_tokens={5_242_880 * n:,}\n"
        f"    throughput/device/tokens_per_second={524_288 / s / 4:,.0f}\n"
        f"    throughput/device/batches_per_second={1 / s:.6f}"
    )


@trainer("fairseq", 30_000, "tokens")
def fairseq(n: int, s: float) -> str:
    return (
        f"{clock(3600 + n)[:19]} | INFO | train_inner | epoch 001: {100 * n:5d} / 9999 loss="
        f"{9 - n / 20:.3f}, ppl=5, wps={30000 / s:.1f}, ups=2.5, wpb=18000, num_updates={100 * n}, "
        f"lr=1e-05, gnorm=1"
    )


@trainer("mlx-lm", 700, "tokens")
def mlx_lm(n: int, s: float) -> str:
    return (
        f"Iter {10 * n}: Train loss {9 - n / 20:.3f}, Learning Rate 1.000e-05, It/sec {1 / s:.3f}, "
        f"Tokens/sec {700 / s:.3f}, Trained Tokens {7000 * n}, Peak mem 5.1 GB"
    )


@trainer("torchtune", 3600, "tokens", head="tune run --nproc_per_node 4\n")
def torchtune(n: int, s: float) -> str:
    return f"Step {n} | loss:{9 - n / 20:.4f} lr:2e-05 tokens_per_second_per_gpu:{900 / s:.4f} peak_mem:1 "


@trainer("aws-fsdp", 16)
def aws_fsdp(n: int, s: float) -> str:
    return (
        f"0: 2025-06-17 I [train.py:103] Batch {n} Loss: {9 - n / 20:.5f}, Speed: {16 / s:.2f} "
        "samples/sec, lr: 0.000100"
    )


@trainer(
    "mmengine",
    128,
    "images",
    head="    GPU number: 8\ntrain_dataloader = dict(\n    batch_size=16,\n    num_workers=2)\n",
)
def mmengine(n: int, s: float) -> str:
    return (
        f"07/03 13:04:17 - mmengine - INFO - Epoch(train)  [1][{10 * n:4d}/9999]  lr: 3.3e-04  eta: "
        f"0:13:14  time: {s:.4f}  data_time: 0.0335  memory: 970  loss: {9 - n / 20:.4f}"
    )


@trainer("mmengine-json", None, "images")
def mmcv_json(n: int, s: float) -> str:
    return json.dumps(
        {
            "mode": "train",
            "epoch": 1,
            "iter": 50 * n,
            "lr": 0.1,
            "data_time": 0.01,
            "loss": 9 - n / 20,
            "time": s,
        }
    )


@trainer(
    "yolox",
    64,
    "images",
    head="trainer:before_train:126 - args: Namespace(batch_size=64, devices=8, fp16=True, num_machines=1)\n",
)
def yolox(n: int, s: float) -> str:
    return (
        f"2021-09-03 | yolox.core.trainer:246 - epoch: 1/300, iter: {10 * n}/9999, mem: 1672Mb, "
        f"iter_time: "
        f"{s:.3f}s, data_time: 0.003s, total_loss: {9 - n / 20:.1f}, iou_loss: 1.3, lr: 2.829e-05, "
        f"size: 736, ETA: 1:00"
    )


@trainer(
    "ultralytics",
    16,
    "images",
    head="Ultralytics 8.4.39 Python-3.9\nengine/trainer: amp=True, batch=16, device=0,1, epochs=9\n",
)
def ultralytics(n: int, s: float) -> str:
    passed = round(10 * n)
    return (
        f"      1/100        15G      3.565      8.985    0.02248        109        480: 9% ━── "
        f"{round(passed / s * jitter(n))}/6848 2.7it/s {passed // 60}:{passed % 60:02d}<37:50"
    )


@trainer(
    "torchvision",
    256,
    "images",
    head="Namespace(amp=False, batch_size=32, distributed=True, world_size=8)\nStart training\n",
)
def torchvision(n: int, s: float) -> str:
    return (
        f"Epoch: [0]  [{10 * n:4d}/9999]  eta: 0:12:34  lr: 0.1  img/s: {32 / s:.3f}  loss: "
        f"{9 - n / 20:.4f}"
        f" (6.95)  acc1: 1.0 (1.0)  time: {s:.4f}  data: 0.0002  max mem: 5000"
    )


@trainer("swin", 1024, "images", head="RANK and WORLD_SIZE in environ: 0/8\n" + '  "BATCH_SIZE": 128,\n')
def swin(n: int, s: float) -> str:
    return (
        f"[2021 swin](main.py 182): INFO Train: [0/300][{10 * n}/9999]\teta 1:00:00 lr 0.000001\ttime "
        f"{s:.4f} ({s:.4f})\tloss {9 - n / 20:.4f} (6.9)\tgrad_norm 1.0 (1.0)\tmem 8000MB"
    )


@trainer("paddleseg", 32, head="GPUs used: 8\n")
def paddleseg(n: int, s: float) -> str:
    return (
        f"{clock(3600 + 5 * n * s)[:19]} [INFO]\t[TRAIN] epoch: 1, iter: {5 * n}/9999, loss: "
        f"{9 - n / 20:.4f}, lr: 0.009, batch_cost: {s:.4f}, reader_cost: 0.1, ips: {4 / s:.4f} "
        f"samples/sec | ETA 00:08"
    )


@trainer(
    "paddlenlp-static",
    384,
    "sequences",
    tail="python -m paddle.distributed.launch --log_dir=./mylog --gpus=0,1,2,3 run_pretrain.py\n",
)
def paddlenlp_static(n: int, s: float) -> str:
    return (
        f"tobal step: {10 * n}, epoch: 0, batch: {10 * n - 1}, loss: {9 - n / 20:.6f}, "
        f"avg_reader_cost: 0.1 "
        f"sec, avg_batch_cost: {s:.5f} sec, avg_samples: 96.00000, ips: {96 / s:.5f} sequences/sec"
    )


@trainer("nvidia-transformer", 70_332, "tokens")
def nvidia_transformer(n: int, s: float) -> str:
    return (
        f"Transformer | epoch 0 | step {10 * n} |avg loss {9 - n / 20:.3f} |avg tokens 70332.6 |tokens/s "
        f"{70332 / s:.3f} |walltime 17.215 |"
    )


@trainer("transformer-xl", 768, "tokens")
def transformer_xl(n: int, s: float) -> str:
    return (
        f"| epoch   1 step {10 * n:8d} | batches {10 * n:6d} / 134411 | lr 0.000e+00 | ms/batch "
        f"{1000 * s:.1f} | tok/s {768 / s:7.0f} | loss {9 - n / 20:5.2f} | ppl 280802.95"
    )


@trainer("mindspore-fps", 512, "images")
def mindspore_fps(n: int, s: float) -> str:
    return f"epoch[0], iter[{100 * n}], loss:{9 - n / 20:.6f}, {512 / s:.2f} imgs/sec, lr:0.1"


@trainer(
    "hf-trainer",
    64,
    head="***** Running training *****\n  Instantaneous batch size per device = 4\n"
    "  Total train batch size (w. parallel, distributed & accumulation) = 64\n"
    "  Gradient Accumulation steps = 8\n  Total optimization steps = 5000\n",
)
def hf_trainer(n: int, s: float) -> str:
    passed = 30 * n
    steps = round(passed / s * jitter(n))
    bar = f"  9%|▏    | {steps}/5000 [{passed // 60:02d}:{passed % 60:02d}<04:05,  2.00it/s]"
    return f"{bar}\n{{'loss': {9 - n / 20:.4f}, 'learning_rate': 2.5e-05, 'epoch': {n / 10}}}"


@trainer(
    "lightning-csv",
    32,
    head="epoch,step,train/batches,train/device/samples_per_sec,train/samples,train/samples_per_sec,train/time,"
    "train_loss\n",
)
def lightning_csv(n: int, s: float) -> str:
    """As the callback `ThroughputMonitor` and `CSVLogger` write it on four devices, window of 20."""
    passed = 5 * n * s / jitter(n)
    rates = f"{8 / s:.6f},{40 * n},{32 / s:.6f}" if n > 20 else f",{40 * n},"
    return f"0,{5 * n - 1},{5 * n},{rates},{passed:.9f},\n0,{5 * n - 1},,,,,,{9 - n / 20:.4f}"
