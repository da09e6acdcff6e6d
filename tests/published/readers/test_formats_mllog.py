"""MLPerf's `:::MLLOG` records in every variant seen, invented and real."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from trainmark.events import Scope
from trainmark.logs.format import Kind
from trainmark.logs.format_file import our_format
from trainmark.logs.input import clean_blocks
from trainmark.logs.logged_run import LoggedRun
from trainmark.logs.read import read_runs
from trainmark.logs.recognition import recognize
from trainmark.measure.log_figure import LogFacts, logged_figure

FORMAT = our_format("mllog")
LOGS = Path(__file__).resolve().parents[3].parent / "shared" / "logs" / "mllog"
real_logs = pytest.mark.skipif(not LOGS.is_dir(), reason="the collected logs are not beside this checkout")

HEAD = (
    (1_000, "submission_benchmark", "resnet", {}),
    (1_000, "global_batch_size", 50, {}),
    (1_000, "lars_opt_momentum", 0.9, {}),
    (1_000, "train_samples", 1000, {}),
)


def record(
    ms: float, key: str, value: Any = None, metadata: dict[str, Any] | None = None, **more: Any
) -> str:
    written = {"namespace": "", "time_ms": ms, "key": key, "value": value, "metadata": metadata or {}, **more}
    return f":::MLLOG {json.dumps(written)}\n"


def read(text: str) -> list[LoggedRun]:
    return list(read_runs(FORMAT, clean_blocks([text.encode()]), "log"))


def only(*records: tuple[Any, ...]) -> LoggedRun:
    (run,) = read("".join(record(*each) for each in (*HEAD, *records)))
    return run


def column(run: LoggedRun, name: str) -> list[float | None]:
    return [None if math.isnan(value) else value for value in run.steps[name]]


def throughput(run: LoggedRun) -> float | None:
    return logged_figure(run.columns(), LogFacts(**run.facts())).throughput


EPOCHS = (
    (2_000, "run_start"),
    (3_000, "epoch_start", None, {"epoch_num": 1}),
    (7_000, "epoch_stop", None, {"epoch_num": 1}),
    (7_000, "eval_start", None, {"epoch_num": 1}),
    (9_000, "eval_stop", None, {"epoch_num": 1}),
    (9_000, "eval_accuracy", 0.25, {"epoch_num": 1}),
    (10_000, "epoch_start", None, {"epoch_num": 2}),
    (14_000, "epoch_stop", None, {"epoch_num": 2}),
    (15_000, "eval_accuracy", 0.75, {"epoch_num": 2}),
    (16_000, "run_stop", None, {"status": "success"}),
)


def test_an_epoch_is_a_row_that_evaluation_does_not_lengthen():
    run = only(*EPOCHS)
    assert column(run, "epoch") == [1, 2]
    assert column(run, "samples") == [1000, 1000]
    assert column(run, "step") == [20, 20]
    assert column(run, "rate") == [250, 250]
    assert column(run, "wall") == [7, 14]
    assert throughput(run) == pytest.approx(250)


def test_the_keys_of_a_run_are_its_settings():
    run = only(*EPOCHS)
    assert run.settings == {
        "global_batch": 50,
        "train_samples": 1000,
        "momentum": 0.9,
        "benchmark": "resnet",
        "status": "success",
        "whole_rate": pytest.approx(2000 / 11),
    }


def test_accuracy_and_the_time_to_train_are_kept():
    run = only(*EPOCHS)
    assert run.evaluations == [{"top1": 0.25, "epoch": 1}, {"top1": 0.75, "epoch": 2}]
    assert run.summary == {"seconds": 14, "top1": 0.75}


def test_a_block_without_epochs_ends_where_its_evaluation_begins():
    run = only(
        (3_000, "block_start", None, {"first_epoch_num": 1, "epoch_count": 4}),
        (11_000, "eval_start", None, {"epoch_num": 4}),
        (19_000, "block_stop", None, {"first_epoch_num": 1}),
    )
    assert (column(run, "samples"), column(run, "rate")) == ([4000], [500])


def test_a_block_with_epochs_is_not_counted_beside_them():
    run = only(
        (2_500, "block_start", None, {"first_epoch_num": 1, "epoch_count": 2}),
        *EPOCHS,
        (17_000, "block_stop"),
    )
    assert len(run.steps) == 2


def test_samples_that_the_program_counts_are_taken_from_stop_to_stop():
    run = only(
        (2_000, "run_start"),
        (3_000, "block_start", None, {"samples_count": 7}),
        (5_000, "block_stop", None, {"samples_count": 400}),
        (5_000, "eval_start", None, {"samples_count": 400}),
        (8_000, "eval_stop", None, {"samples_count": 400}),
        (8_000, "block_start", None, {"samples_count": 50}),
        (10_000, "block_stop", None, {"samples_count": 700}),
    )
    assert (column(run, "samples"), column(run, "rate")) == ([300], [150])


def with_benchmark(name: str, *records: tuple[Any, ...], **settings: float) -> LoggedRun:
    facts = {"global_batch_size": 50, "train_samples": 1000, **settings}
    head = [(1_000, "submission_benchmark", name), *((1_000, key, value) for key, value in facts.items())]
    (run,) = read("".join(record(*each) for each in (*head, *records)))
    return run


def evaluated(*counts: float, every: int = 2_000) -> tuple[tuple[Any, ...], ...]:
    evaluations = (
        (1_000 + every * (number + 1), "eval_accuracy", 0.5, {"epoch_num": count})
        for number, count in enumerate(counts)
    )
    return ((1_000, "run_start"), *evaluations)


def test_the_epochs_of_bert_are_samples_and_those_of_its_blocks_steps():
    block = (1_500, "block_start", None, {"first_epoch_num": 1, "epoch_count": 300})
    run = with_benchmark("bert", block, *evaluated(150_000, 300_000, 450_000))
    assert column(run, "rate") == [75_000] * 3


def test_an_epoch_of_bert_that_is_always_the_first_counts_nothing():
    assert throughput(with_benchmark("bert", *evaluated(1, 1, 1))) is None


def test_the_epochs_of_gpt3_are_tokens():
    run = with_benchmark("gpt3", *evaluated(2048e3, 4096e3, 6144e3), max_sequence_length=2048)
    assert column(run, "rate") == [500] * 3


def test_without_its_sequence_length_a_log_of_gpt3_gives_no_figure():
    assert throughput(with_benchmark("gpt3", *evaluated(2048e3, 4096e3, 6144e3))) is None


def test_the_epochs_of_dlrm_are_shares_of_one_whatever_part_of_it_is_trained():
    run = with_benchmark("dlrm_dcnv2", *evaluated(0.05, 0.1, 0.15), train_samples=3.7e9)
    assert column(run, "rate") == [pytest.approx(0.05 * 4_195_197_692 / 2)] * 3


def test_an_epoch_of_detection_that_counts_batches_is_as_long_as_its_images():
    run = with_benchmark("ssd", *EPOCHS, train_samples=4572, global_batch_size=256)
    assert column(run, "samples") == [1_170_301] * 2


def test_an_epoch_that_counts_neither_batches_nor_images_of_a_known_set_is_not_counted():
    assert throughput(with_benchmark("ssd", *EPOCHS, train_samples=77, global_batch_size=256)) is None


def test_epochs_of_u_net_may_count_samples():
    blocks = [
        (1_000 + 2_000 * number, key, None, {"first_epoch_num": 168_000 + 3360 * number, "epoch_count": 3360})
        for number in range(4)
        for key in ("block_start", "block_stop")
    ]
    moved = [(ms + (1_000 if key == "block_stop" else 0), key, *rest) for ms, key, *rest in blocks]
    assert column(with_benchmark("unet3d", *moved, train_samples=168), "rate") == [3360] * 3


def test_an_evaluation_beside_training_takes_no_time_from_it():
    records = [(1_000, "run_start")]
    for number in range(1, 5):
        begin = 2_000 * number
        records += [
            (begin, "eval_start", None, {"epoch_num": number / 20}),
            (begin + 10, "block_start", None, {"first_epoch_num": 1}),
            (begin + 1_500, "eval_stop", None, {"epoch_num": number / 20}),
        ]
    run = with_benchmark("dlrm", *records)
    assert column(run, "rate")[1:] == [pytest.approx(0.05 * 4_195_197_692 / 2)] * 3


def test_iterations_of_a_benchmark_without_samples_are_steps():
    run = with_benchmark("minigo", *EPOCHS)
    figure = logged_figure(run.columns(), LogFacts(**run.facts()))
    assert figure.throughput is None
    assert figure.steps_per_second == pytest.approx(0.25)


def test_blocks_without_counts_that_know_only_their_step_count_batches():
    blocks = [
        (
            1_000 + 2_000 * number,
            "block_stop",
            "training_step",
            {"step_num": 100 * number, "first_epoch_num": 0},
        )
        for number in range(1, 5)
    ]
    assert column(with_benchmark("stable_diffusion", *blocks), "rate") == [2500] * 3


def test_a_throughput_that_the_program_tracks_is_not_used():
    run = only(
        (2_000, "epoch_start", None, {"epoch_num": 1}),
        (3_000, "tracked_stats", {"throughput": 125.5, "loss": 6.5}, {"step": 50}),
        (4_000, "tracked_stats", {"validation_time": 1.0}, {"step": 50}),
        (6_000, "epoch_stop", None, {"epoch_num": 1}),
    )
    assert (column(run, "rate"), column(run, "loss")) == ([250], [6.5])


def doubted(run: LoggedRun) -> set[str]:
    figure = logged_figure(run.columns(), LogFacts(**run.facts()))
    return {doubt.code.value for doubt in figure.doubts}


def test_a_run_that_was_aborted_or_does_not_say_how_it_ended_is_doubted():
    assert "run-cut-short" not in doubted(only(*EPOCHS))
    assert "run-cut-short" in doubted(only(*EPOCHS[:-1]))
    assert "run-cut-short" in doubted(only(*EPOCHS[:-1], (16_000, "run_stop", None, {"status": "aborted"})))


def test_records_that_go_on_days_later_are_no_end_of_the_run():
    """The start of one log with the rest of another: their programs and batches may be the same."""
    another_day = [(ms + 86_400_000 * 3, *rest) for ms, *rest in EPOCHS]
    assert "run-cut-short" in doubted(only(*EPOCHS[:4], *another_day[4:]))


def test_a_figure_far_from_that_of_the_whole_run_is_doubted():
    late = [(ms + (50_000 if ms > 9_000 else 0), *rest) for ms, *rest in EPOCHS]
    assert "whole-run-differs" in doubted(only(*late))
    assert "whole-run-differs" not in doubted(only(*EPOCHS))


def test_records_in_no_order_are_put_in_order_and_doubted():
    many = [(ms + 20_000 * n, *rest) for n in range(4) for ms, *rest in EPOCHS[1:-1]]
    shuffled = sorted(many, key=lambda each: hash((each[0] * 7919) % 1013))
    run = only((2_000, "run_start"), *shuffled, (90_000, "run_stop", None, {"status": "success"}))
    assert "out-of-order" in doubted(run)


def test_a_name_that_comes_after_the_run_belongs_to_it():
    late = record(17_000, "submission_benchmark", "resnet")
    assert len(read("".join(record(*each) for each in (*HEAD, *EPOCHS)) + late)) == 1


@pytest.mark.parametrize(
    "changed",
    [
        lambda line: line.replace('"namespace": ""', '"namespace": 0'),
        lambda line: re.sub(r'"time_ms": (\d+)', r'"time_ms": \1.0', line),
        lambda line: line.replace('"key": "run_stop"', '"event_type": "POINT_IN_TIME", "key": "run_stop"'),
        lambda line: "[rank 0] some prefix " + line,
        lambda line: line.rstrip("\n") + " 2020-06-25 22:11:55 glued words }\n",
        lambda line: ':::MLLOG {"namespace": "", "time_\n' + line,
        lambda line: line + ":::MLLOG [1, 2]\n:::MLLOG {}\n",
    ],
    ids=["number as namespace", "float time", "stop as point", "prefix", "glued", "cut record", "no record"],
)
def test_every_variant_gives_the_same_run(changed):
    lines = [record(*each) for each in (*HEAD, *EPOCHS)]
    (run,) = read("".join(map(changed, lines)))
    assert column(run, "rate") == [250, 250]
    assert run.summary == {"seconds": 14, "top1": 0.75}


def test_an_aborted_run_says_so():
    assert (
        only(*EPOCHS[:-1], (16_000, "run_stop", None, {"status": "aborted"})).settings["status"] == "aborted"
    )


def test_runs_appended_to_one_file_are_parted():
    once = "".join(record(*each) for each in (*HEAD, *EPOCHS))
    assert [len(run.steps) for run in read(once + once.replace("1000,", "2000,"))] == [2, 2]


def test_an_interval_that_spans_two_blocks_is_whole():
    blocks = [record(*each).encode() for each in (*HEAD, *EPOCHS)]
    (run,) = read_runs(FORMAT, blocks, "log")
    assert column(run, "rate") == [250, 250]


def test_its_rates_count_all_ranks_since_the_line_before():
    assert (FORMAT.rate.scope, FORMAT.rate.kind) == (Scope.GLOBAL, Kind.SINCE_LAST)


REAL = {
    # file: rows, whole batch, samples an epoch, last accuracy, milliseconds from run_start to run_stop
    "DellEMC_C4140": (40, 832, 1281167, 0.7603, 1593150340361 - 1593141109250),
    "Google_gpu-v100-8-TF2.0": (9, 2496, 1281167, 0.7595199942588806, 1593160053801 - 1593154759901),
    "NVIDIA_dgxa100_ngc20.06_mxnet": (41, 3264, 1281167, 0.76146, 2366663),
    "SIAT_modelarts_512_mindspore_close": (15, 32768, 1277952, 0.76004, 1593186677022 - 1593186581829),
}


def real(name: str) -> LoggedRun:
    text = (LOGS / f"v0.7_{name}_resnet_result_0.txt").read_bytes()
    recognition, blocks = recognize(clean_blocks([text]), name)
    assert recognition.format is FORMAT
    (run,) = read_runs(FORMAT, blocks, name)
    return run


@real_logs
@pytest.mark.parametrize("name", REAL)
def test_a_real_submission_says_what_its_records_say(name):
    run = real(name)
    rows, batch, samples, accuracy, milliseconds = REAL[name]
    assert len(run.steps) == rows
    assert (run.settings["global_batch"], run.settings["train_samples"]) == (batch, samples)
    assert (run.top1, run.settings["status"]) == (accuracy, "success")
    assert run.summary["seconds"] == pytest.approx(milliseconds / 1000)
    assert run.world_size is None


@real_logs
@pytest.mark.parametrize("name", ["DellEMC_C4140", "NVIDIA_dgxa100_ngc20.06_mxnet"])
def test_real_epochs_are_as_fast_as_their_starts_and_stops_say(name):
    text = (LOGS / f"v0.7_{name}_resnet_result_0.txt").read_text(errors="replace")
    times = {
        key: [int(ms) for ms in re.findall(rf'"time_ms": (\d+),[^\n]*"key": "{key}"', text)]
        for key in ("epoch_start", "epoch_stop")
    }
    milliseconds = sum(times["epoch_stop"]) - sum(times["epoch_start"])
    expected = 1281167 * len(times["epoch_stop"]) / milliseconds * 1000
    assert throughput(real(name)) == pytest.approx(expected, rel=0.01)


@real_logs
def test_the_first_block_of_googles_run_trained_three_epochs_before_its_evaluation():
    run = real("Google_gpu-v100-8-TF2.0")
    assert run.steps["rate"][0] == pytest.approx(3 * 1281167 / (1593155167.462 - 1593154759.901), rel=1e-4)
