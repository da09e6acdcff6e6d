"""Reports of our own making: consistent ones, in both languages, for a test to plant one error in."""

from pathlib import Path

from trainmark.audit.audit import audit_report
from trainmark.audit.report import parse_report

ENGLISH = """\
# ResNet-50 v1.5 on four servers

Tested on 4 servers with 8 Tesla V100-SXM2-16GB each.

## FP32, batch size = 128

| node_num | gpu_num_per_node | batch_size_per_device | samples/s | speedup |
| -------- | ---------------- | --------------------- | --------- | ------- |
| 1 | 1 | 128 | 380.00 | 1.00 |
| 1 | 8 | 128 | 2964.00 | 7.80 |
| 2 | 8 | 128 | 5837.00 | 15.36 |
| 4 | 8 | 128 | 11476.00 | 30.20 |

The max batch size=128.
"""
CHINESE = """\
# ResNet50 v1.5 测评

显卡：Tesla V100-SXM2-32GB x 8

每个配置进行5次训练，排除前100个iter取后100个iter来计算速度。

```shell
python extract.py --log_dir=logs --warmup_batches=100 --train_batches=200
logs/1n1g/rn50_b128_fp32_1.log {1: 380.0}
logs/1n1g/rn50_b128_fp32_2.log {1: 380.0, 2: 381.0}
logs/1n1g/rn50_b128_fp32_3.log {1: 380.0, 2: 381.0, 3: 382.5}
logs/1n8g/rn50_b128_fp32_1.log {1: 2964.0}
logs/1n8g/rn50_b128_fp32_2.log {1: 2964.0, 2: 2970.0}
logs/1n8g/rn50_b128_fp32_3.log {1: 2964.0, 2: 2970.0, 3: 2972.7}
logs/4n8g/rn50_b128_fp32_1.log {1: 11500.0}
logs/4n8g/rn50_b128_fp32_2.log {1: 11500.0, 2: 11510.0}
logs/4n8g/rn50_b128_fp32_3.log {1: 11500.0, 2: 11510.0, 3: 11520.0}
{'rn50': {'1n1g': {'average_speed': 381.17,
                   'batch_size_per_device': 128,
                   'median_speed': 381.0,
                   'speedup': 1.0},
          '1n8g': {'average_speed': 2968.9,
                   'batch_size_per_device': 128,
                   'median_speed': 2970.0,
                   'speedup': 7.8},
          '4n8g': {'average_speed': 11510.0,
                   'batch_size_per_device': 128,
                   'median_speed': 11510.0,
                   'speedup': 30.21}}}
```

## 结果

- 训练吞吐（images/sec）如下：

|卡数 | 吞吐(images/sec) | 加速比 |
|:-----:|:-----:|:-----:|
|1 | 381.00 | 1.00 |
|8 | ２９７０.00 | 7.80 |
|32 | 11,510.00 | 30.21 |
""".replace("进行5次", "进行3次")
TIMED = """\
# ResNet50 训练

经过145,000秒的训练完成了90个epoch的训练，精度达到76.51%，训练吞吐达到800.25img/s。

| | Time2train(sec) | 吞吐(images/sec) | 准确率(%) | 加速比 |
|---|---|---|---|---|
| 1卡 | 145,000 | 800.25 | 76.51 | - |
"""
LOG = """\
```
+ tee ngc/2n8g/r50_b128_fp32_1.log
+ python launch.py --nnodes 2 --nproc_per_node 8 main.py -b 128 --mom 0.875 --wd 3.0517578125e-05 --prof 151
DLL 2021-01-01 10:00:00.000000 - PARAMETER batch_size : 128  momentum : 0.875  world_size : 16
DLL 2021-01-01 10:00:10.000000 - Epoch: 0 Iteration: 1  train.loss : 7.0  train.total_ips : 300.00 img/s
DLL 2021-01-01 10:00:10.400000 - Epoch: 0 Iteration: 2  train.loss : 6.9  train.total_ips : 5120.00 img/s
DLL 2021-01-01 10:00:10.800000 - Epoch: 0 Iteration: 3  train.loss : 6.8  train.total_ips : 5120.00 img/s
DLL 2021-01-01 10:00:11.200000 - Epoch: 0 Iteration: 4  train.loss : 6.8  train.total_ips : 5120.00 img/s
DLL 2021-01-01 10:00:11.600000 - Epoch: 0 Iteration: 5  train.loss : 6.7  train.total_ips : 5120.00 img/s
DLL 2021-01-01 10:00:12.000000 - Epoch: 0 Iteration: 6  train.loss : 6.7  train.total_ips : 5120.00 img/s
```
"""
LOGGED = "# ResNet50\n\nEach figure is over the first 150 iterations, of which the last 100 count.\n\n" + LOG
HTML = """\
<!DOCTYPE html>
<html><body><h1>ResNet-50 v1.5</h1><p>NVIDIA A100-SXM4-80GB</p>
<table>
<tr><th>GPUs</th><th>Throughput (images/s)</th><th>Speedup</th></tr>
<tr><td>1</td><td>2,470</td><td>1.00</td></tr>
<tr><td>8</td><td>18,772</td><td>7.60</td></tr>
</table></body></html>
"""
CSV = "gpu num,images/sec,speedup\n1,381.46,1\n8,2948.2,7.73\n32,11520.1,30.20\n"
DECIMAL_COMMA = "gpu num;images/sec;speedup\n1;381,46;1\n8;2948,2;7,73\n"
RUN_ROWS = """# ResNet-50 v1.5 on ImageNet

We trained ResNet-50 on 8 x A100 80GB and report the mean of 3 runs.

## Training

| GPUs | Batch size / GPU | images/s | GPU memory (GB) | time to train (hours) |
|---|---|---|---|---|
| 1 | 256 | 2,534 | 71 | 12.7 |
| 4 | 256 | 9,871 | 72 | 3.3 |
| 8 | 256 | 19,712 | 73 | 1.65 |

## Runs

| run | throughput (img/s) |
|---|---|
| 1 | 19,512 |
| 2 | 19,844 |
| 3 | 19,700 |
| average | 19,685 |

One epoch takes 65 s at 8 GPUs; 90 epochs took 98 minutes.
The GPU memory in use was 73 GB of 80 GB.
Step time is 104 ms at 8 GPUs.
Each epoch of 1,281,167 images ends with a validation.
"""
CONSISTENT = {
    "run_rows.md": RUN_ROWS,
    "english.md": ENGLISH,
    "chinese.md": CHINESE,
    "timed.txt": TIMED,
    "logged.md": LOGGED,
    "page.html": HTML,
    "table.csv": CSV,
    "comma.csv": DECIMAL_COMMA,
}


def findings(text, name="report.md"):
    return audit_report(parse_report(text, name))


def codes(text, name="report.md"):
    return [finding.code for finding in findings(text, name)]


def planted(text, right, wrong):
    """The text with one thing changed; what is changed has to be there."""
    assert right in text
    return text.replace(right, wrong, 1)


SEEDS = Path(__file__).resolve().parents[4] / "shared" / "seeds"
