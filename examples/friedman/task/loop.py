"""The main of every program of this family: answer what can run, conform, or train by steps or epochs.

A framework's file gives `Training(options)` with `step(x, y)`, which returns the loss over all ranks,
`rmse(x, y)` and `close()`.
"""

import argparse
import json
import os
import resource
import sys
from pathlib import Path

from friedman.task import METRICS, problem

from trainmark import probe

STEPS_PER_EPOCH = 64
REFUSED = 3


def main(framework, version, training):
    options = parse(sys.argv[1:])
    if options.check:
        answer(version)
        return
    if sentence := refusal(options):
        sys.stderr.write(f"refused: {sentence}\n")
        sys.exit(REFUSED)
    if options.memory_cap:
        resource.setrlimit(resource.RLIMIT_DATA, (options.memory_cap, options.memory_cap))
    begun = training(options)
    facts = {"framework": framework, "framework_version": version, "workload": "friedman"}
    if options.conform:
        losses = [begun.step(*batch(options, step)) for step in range(options.steps)]
        Path(options.conform.replace("{rank}", str(options.rank))).write_text(json.dumps({"losses": losses}))
    elif options.epochs or options.until:
        train_by_epochs(options, begun, facts)
    else:
        run = probe.start(unit="rows", **facts)
        for step in range(options.steps):
            train_step(options, begun, run, step)
        run.end()
    begun.close()


def parse(arguments):
    parser = argparse.ArgumentParser(description="Train a perceptron on Friedman's first problem.")
    for name, default in (("batch", 32), ("steps", 100), ("width", 64), ("seed", 0), ("epochs", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--memory-cap", type=int, help="bytes")
    parser.add_argument("--until", type=finish_line, action="append", default=[])
    for name in ("device", "precision", "data", "compile", "conform", "checkpoints"):
        parser.add_argument(f"--{name}")
    for name in ("checkpoint-steps", "checkpoints-kept"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    options.rank = int(os.environ.get("RANK", "0"))
    options.world_size = int(os.environ.get("WORLD_SIZE", "1"))
    return options


def finish_line(text):
    name, _, value = text.partition("=")
    if name not in METRICS:
        raise ValueError(text)
    return name, float(value)


def refusal(options):
    if options.precision not in (None, "fp32"):
        return f"this perceptron trains in fp32, not in {options.precision}."
    if options.device not in (None, "cpu"):
        return "this perceptron is for CPUs; say device: cpu."
    return None


def answer(version):
    """The facts, then for each command line on standard input null or why it cannot run."""
    print(json.dumps({"framework_version": version, "device_name": "cpu"}), flush=True)
    for line in sys.stdin:
        print(json.dumps(refusal(parse(json.loads(line)["arguments"]))), flush=True)


def batch(options, step):
    return problem.rows(options.batch, options.seed, step, options.rank)


def train_step(options, training, run, step):
    loss = training.step(*batch(options, step))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    run.step(options.batch, loss=loss, lr=problem.RATE, memory=peak)


def train_by_epochs(options, training, facts):
    targets = dict(options.until)
    epochs = options.epochs or 50
    run = probe.start(
        unit="rows",
        epochs=epochs,
        steps_per_epoch=STEPS_PER_EPOCH,
        target=targets,
        metrics=METRICS,
        training_samples=STEPS_PER_EPOCH * options.batch * options.world_size,
        validation_samples=problem.VALIDATION_ROWS,
        seed=options.seed,
        **facts,
    )
    reached = False
    for epoch in range(epochs):
        run.mark("epoch", epoch=epoch, state="begin")
        for step in range(epoch * STEPS_PER_EPOCH, (epoch + 1) * STEPS_PER_EPOCH):
            train_step(options, training, run, step)
        run.mark("epoch", epoch=epoch, state="end")
        run.mark("eval", epoch=epoch, state="begin")
        rmse = training.rmse(*problem.rows(problem.VALIDATION_ROWS, options.seed, problem.VALIDATION))
        run.mark("eval", epoch=epoch, state="end", rmse=rmse, samples=problem.VALIDATION_ROWS)
        reached = bool(targets) and rmse <= targets["rmse"]
        if reached:
            break
    run.end(reached=reached if targets else None)
