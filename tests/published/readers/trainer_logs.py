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


def lines(one: Callable[[int, float], str], seconds: float) -> str:
    """A line a report, number 1 and on; times differ by a thousandth, as they do."""
    return "".join(one(n, seconds * (1 + 0.001 * (n % 3))) + "\n" for n in range(1, REPORTS + 1))


def megatron(seconds: float) -> Written:
    head = "using world size: 16, data-parallel-size: 2, tensor-model-parallel size: 8\n"
    body = lines(
        lambda n, s: (
            f" [{clock(3600 + 10 * n * s)[:19]}] iteration {10 * n:8d}/  500000 | consumed samples: {n} | "
            f"elapsed time per iteration (ms): {1000 * s:.1f} | learning rate: 1.5E-04 | global batch "
            f"size:   128 | "
            f"lm loss: {9 - n / 20:.6E} | loss scale: 1.0 | grad norm: 1.2 | number of nan iterations:   0 |"
        ),
        seconds,
    )
    return Written(head + body, 128 / seconds)


def deepspeed(seconds: float) -> Written:
    body = lines(
        lambda n, s: (
            f"[{clock(3600 + 10 * n * s)}] [INFO] [timer.py:260:stop] epoch=0/micro_step={40 * n}/"
            f"global_step={10 * n}, RunningAvgSamplesPerSec={200.0}, CurrSamplesPerSec={256 / s:.6f}, "
            f"MemAllocated=1GB"
        ),
        seconds,
    )
    return Written(body, 256 / seconds)


def nanogpt(seconds: float) -> Written:
    def line(n: int, s: float) -> str:
        evaluated = f"step {10 * n}: train loss 3.1, val loss 3.2\n" if n % 10 == 0 else ""
        s = 20 * s if evaluated else s
        return f"{evaluated}iter {10 * n}: loss {9 - n / 20:.4f}, time {1000 * s:.2f}ms, mfu 40.00%"

    head = "tokens per iteration will be: 491,520\n"
    return Written(head + lines(line, seconds), 491_520 / seconds, "tokens")


def llmc(seconds: float) -> Written:
    head = "batch_size B=16 * seq_len T=1024 * num_processes=8 and total_batch_size=1048576\n"
    body = lines(
        lambda n, s: (
            f"step {n:4d}/32000 | loss {9 - n / 20:.6f} (+nanz)| norm 1.0 (+nanz)| lr 8.57e-07 | "
            f"{1000 * s:.2f} ms | 42.6% bf16 MFU | {1048576 / s:.0f} tok/s"
        ),
        seconds,
    )
    return Written(head + body, 1_048_576 / seconds, "tokens")


def modded_nanogpt(seconds: float) -> Written:
    body = lines(
        lambda n, s: f"step:{n}/5100 train_loss:5.1 train_time:{1000 * n * seconds:.0f}ms step_avg:1ms",
        seconds,
    )
    return Written(body, None, "tokens", 1 / seconds)


def torchtitan(seconds: float) -> Written:
    head = "[titan] - root - INFO - Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]\n"
    body = lines(
        lambda n, s: (
            f"[titan] {clock(3600 + 10 * n * s)} - root - INFO - step: {10 * n}  loss: {9 - n / 20:.4f}  "
            f"grad_norm: 1.2  memory: 68.57GiB(86.69%)  tps: {8192 / s:,.0f}  tflops: 300.10  mfu: 39.73%"
        ),
        seconds,
    )
    return Written(head + body, 8 * 8192 / seconds, "tokens")


def nemo(seconds: float) -> Written:
    body = lines(
        lambda n, s: (
            f"Training epoch 0, iteration {n}/999 | lr: 4.498e-06 | global_batch_size: 512 | global_step: "
            f"{n} | reduced_train_loss: {9 - n / 20:.3f} | train_step_timing in s: {s:.4f} | "
            f"consumed_samples: {512 * n}"
        ),
        seconds,
    )
    return Written(body, 512 / seconds)


def maxtext(seconds: float) -> Written:
    body = lines(
        lambda n, s: (
            f"completed step: {n + 1}, seconds: {s:.3f}, TFLOP/s/device: 135.1, Tokens/s/device: "
            f"{65536 / s:.3f}, total_weights: 262144, loss: {9 - n / 20:.3f}"
        ),
        seconds,
    )
    return Written(body, 262_144 / seconds, "tokens")


def litgpt(seconds: float) -> Written:
    head = "{'devices': 2, 'num_nodes': 1, 'train': TrainArgs(global_batch_size=16, micro_batch_size=4)}\n"
    body = lines(
        lambda n, s: (
            f"Epoch 1 | iter {n} step {n // 2} | loss train: {9 - n / 20:.3f}, val: n/a | iter time: "
            f"{1000 * s:.2f} ms{' (step)' if n % 2 == 0 else ''}"
        ),
        seconds,
    )
    return Written(head + body, 8 / seconds)


def olmo(seconds: float) -> Written:
    def line(n: int, s: float) -> str:
        return (
            f"{clock(3600 + 10 * n * s).replace(',', '.')}\thost:0\tolmo.train:990\tINFO\t"
            f"[step={10 * n}/10000,epoch=0]\n    train/CrossEntropyLoss={9 - n / 20:.3f}\n    "
            f"throughput/total_tokens={5_242_880 * n:,}\n"
            f"    throughput/device/tokens_per_second={524_288 / s / 4:,.0f}\n"
            f"    throughput/device/batches_per_second={1 / s:.6f}"
        )

    return Written(lines(line, seconds), 524_288 / seconds, "tokens")


def fairseq(seconds: float) -> Written:
    body = lines(
        lambda n, s: (
            f"{clock(3600 + n)[:19]} | INFO | train_inner | epoch 001: {100 * n:5d} / 9999 loss="
            f"{9 - n / 20:.3f}, ppl=5, wps={30000 / s:.1f}, ups=2.5, wpb=18000, num_updates={100 * n}, "
            f"lr=1e-05, gnorm=1"
        ),
        seconds,
    )
    return Written(body, 30_000 / seconds, "tokens")


def mlx_lm(seconds: float) -> Written:
    body = lines(
        lambda n, s: (
            f"Iter {10 * n}: Train loss {9 - n / 20:.3f}, Learning Rate 1.000e-05, It/sec {1 / s:.3f}, "
            f"Tokens/sec {700 / s:.3f}, Trained Tokens {7000 * n}, Peak mem 5.1 GB"
        ),
        seconds,
    )
    return Written(body, 700 / seconds, "tokens")


def torchtune(seconds: float) -> Written:
    body = lines(
        lambda n, s: (
            f"Step {n} | loss:{9 - n / 20:.4f} lr:2e-05 tokens_per_second_per_gpu:{900 / s:.4f} peak_mem:1 "
        ),
        seconds,
    )
    return Written("tune run --nproc_per_node 4\n" + body, 3600 / seconds, "tokens")


def aws_fsdp(seconds: float) -> Written:
    body = lines(
        lambda n, s: (
            f"0: 2025-06-17 I [train.py:103] Batch {n} Loss: {9 - n / 20:.5f}, Speed: {16 / s:.2f} "
            "samples/sec, lr: 0.000100"
        ),
        seconds,
    )
    return Written(body, 16 / seconds)


def mmengine(seconds: float) -> Written:
    body = lines(
        lambda n, s: (
            f"07/03 13:04:17 - mmengine - INFO - Epoch(train)  [1][{10 * n:4d}/9999]  lr: 3.3e-04  eta: "
            f"0:13:14  time: {s:.4f}  data_time: 0.0335  memory: 970  loss: {9 - n / 20:.4f}"
        ),
        seconds,
    )
    head = "    GPU number: 8\ntrain_dataloader = dict(\n    batch_size=16,\n    num_workers=2)\n"
    return Written(head + body, 128 / seconds, "images")


def mmcv_json(seconds: float) -> Written:
    body = lines(
        lambda n, s: json.dumps(
            {
                "mode": "train",
                "epoch": 1,
                "iter": 50 * n,
                "lr": 0.1,
                "data_time": 0.01,
                "loss": 9 - n / 20,
                "time": s,
            }
        ),
        seconds,
    )
    return Written(body, None, "images", 1 / seconds)


def yolox(seconds: float) -> Written:
    head = "trainer:before_train:126 - args: Namespace(batch_size=64, devices=8, fp16=True, num_machines=1)\n"
    body = lines(
        lambda n, s: (
            f"2021-09-03 | yolox.core.trainer:246 - epoch: 1/300, iter: {10 * n}/9999, mem: 1672Mb, "
            f"iter_time: "
            f"{s:.3f}s, data_time: 0.003s, total_loss: {9 - n / 20:.1f}, iou_loss: 1.3, lr: 2.829e-05, "
            f"size: 736, ETA: 1:00"
        ),
        seconds,
    )
    return Written(head + body, 64 / seconds, "images")


def ultralytics(seconds: float) -> Written:
    head = "Ultralytics 8.4.39 Python-3.9\nengine/trainer: amp=True, batch=16, device=0,1, epochs=9\n"

    def line(n: int, _: float) -> str:
        passed = round(10 * n)
        return (
            f"      1/100        15G      3.565      8.985    0.02248        109        480: 9% ━── "
            f"{round(passed / seconds)}/6848 2.7it/s {passed // 60}:{passed % 60:02d}<37:50"
        )

    return Written(head + lines(line, seconds), 16 / seconds, "images")


def torchvision(seconds: float) -> Written:
    head = "Namespace(amp=False, batch_size=32, distributed=True, world_size=8)\nStart training\n"
    body = lines(
        lambda n, s: (
            f"Epoch: [0]  [{10 * n:4d}/9999]  eta: 0:12:34  lr: 0.1  img/s: {32 / s:.3f}  loss: "
            f"{9 - n / 20:.4f}"
            f" (6.95)  acc1: 1.0 (1.0)  time: {s:.4f}  data: 0.0002  max mem: 5000"
        ),
        seconds,
    )
    return Written(head + body, 256 / seconds, "images")


def swin(seconds: float) -> Written:
    head = "RANK and WORLD_SIZE in environ: 0/8\n"
    body = lines(
        lambda n, s: (
            f"[2021 swin](main.py 182): INFO Train: [0/300][{10 * n}/9999]\teta 1:00:00 lr 0.000001\ttime "
            f"{s:.4f} ({s:.4f})\tloss {9 - n / 20:.4f} (6.9)\tgrad_norm 1.0 (1.0)\tmem 8000MB"
        ),
        seconds,
    )
    return Written(head + '  "BATCH_SIZE": 128,\n' + body, 1024 / seconds, "images")


def paddleseg(seconds: float) -> Written:
    body = lines(
        lambda n, s: (
            f"{clock(3600 + 5 * n * s)[:19]} [INFO]\t[TRAIN] epoch: 1, iter: {5 * n}/9999, loss: "
            f"{9 - n / 20:.4f}, lr: 0.009, batch_cost: {s:.4f}, reader_cost: 0.1, ips: {4 / s:.4f} "
            f"samples/sec | ETA 00:08"
        ),
        seconds,
    )
    return Written("GPUs used: 8\n" + body, 32 / seconds)


def paddlenlp_static(seconds: float) -> Written:
    body = lines(
        lambda n, s: (
            f"tobal step: {10 * n}, epoch: 0, batch: {10 * n - 1}, loss: {9 - n / 20:.6f}, "
            f"avg_reader_cost: 0.1 "
            f"sec, avg_batch_cost: {s:.5f} sec, avg_samples: 96.00000, ips: {96 / s:.5f} sequences/sec"
        ),
        seconds,
    )
    tail = "python -m paddle.distributed.launch --log_dir=./mylog --gpus=0,1,2,3 run_pretrain.py\n"
    return Written(body + tail, 384 / seconds, "sequences")


def nvidia_transformer(seconds: float) -> Written:
    body = lines(
        lambda n, s: (
            f"Transformer | epoch 0 | step {10 * n} |avg loss {9 - n / 20:.3f} |avg tokens 70332.6 |tokens/s "
            f"{70332 / s:.3f} |walltime 17.215 |"
        ),
        seconds,
    )
    return Written(body, 70_332 / seconds, "tokens")


def transformer_xl(seconds: float) -> Written:
    body = lines(
        lambda n, s: (
            f"| epoch   1 step {10 * n:8d} | batches {10 * n:6d} / 134411 | lr 0.000e+00 | ms/batch "
            f"{1000 * s:.1f} | tok/s {768 / s:7.0f} | loss {9 - n / 20:5.2f} | ppl 280802.95"
        ),
        seconds,
    )
    return Written(body, 768 / seconds, "tokens")


def mindspore_fps(seconds: float) -> Written:
    body = lines(
        lambda n, s: f"epoch[0], iter[{100 * n}], loss:{9 - n / 20:.6f}, {512 / s:.2f} imgs/sec, lr:0.1",
        seconds,
    )
    return Written(body, 512 / seconds, "images")


def hf_trainer(seconds: float) -> Written:
    head = (
        "***** Running training *****\n  Instantaneous batch size per device = 4\n"
        "  Total train batch size (w. parallel, distributed & accumulation) = 64\n"
        "  Gradient Accumulation steps = 8\n  Total optimization steps = 5000\n"
    )

    def line(n: int, _: float) -> str:
        passed = 30 * n
        bar = f"  9%|▏    | {round(passed / seconds)}/5000 [{passed // 60:02d}:{passed % 60:02d}<04:05,  "
        "2.00it/s]"
        return f"{bar}\n{{'loss': {9 - n / 20:.4f}, 'learning_rate': 2.5e-05, 'epoch': {n / 10}}}"

    return Written(head + lines(line, seconds), 64 / seconds)


def lightning_csv(seconds: float) -> Written:
    """As the callback `ThroughputMonitor` and `CSVLogger` write it on four devices, window of 20."""
    head = (
        "epoch,step,train/batches,train/device/samples_per_sec,train/samples,train/samples_per_sec,train/time,"
        "train_loss\n"
    )
    times = [0.0]

    def rows(n: int, s: float) -> str:
        times.append(times[-1] + 5 * s)
        rates = f"{8 / s:.6f},{40 * n},{32 / s:.6f}" if n > 20 else f",{40 * n},"
        return f"0,{5 * n - 1},{5 * n},{rates},{times[-1]:.9f},\n0,{5 * n - 1},,,,,,{9 - n / 20:.4f}"

    return Written(head + lines(rows, seconds), 32 / seconds)


LOGS: dict[str, Callable[[float], Written]] = {
    "megatron": megatron,
    "deepspeed": deepspeed,
    "nanogpt": nanogpt,
    "llm.c": llmc,
    "modded-nanogpt": modded_nanogpt,
    "torchtitan": torchtitan,
    "nemo": nemo,
    "maxtext": maxtext,
    "litgpt": litgpt,
    "olmo": olmo,
    "fairseq": fairseq,
    "mlx-lm": mlx_lm,
    "torchtune": torchtune,
    "aws-fsdp": aws_fsdp,
    "mmengine": mmengine,
    "mmengine-json": mmcv_json,
    "yolox": yolox,
    "ultralytics": ultralytics,
    "torchvision": torchvision,
    "swin": swin,
    "paddleseg": paddleseg,
    "paddlenlp-static": paddlenlp_static,
    "nvidia-transformer": nvidia_transformer,
    "transformer-xl": transformer_xl,
    "mindspore-fps": mindspore_fps,
    "hf-trainer": hf_trainer,
    "lightning-csv": lightning_csv,
}
