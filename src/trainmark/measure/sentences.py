"""The English sentences of the doubts that a report shows, by the name of the doubt and its variant.

Each says what is wrong, then what to do. Other languages have the same names and values in `report`.
"""

from __future__ import annotations

IN_TRIALS = "In {trials} of {of} trials: {sentence}"
SENTENCES: dict[str, str] = {
    "few-trials": "{n} trials are too few for a 95 % interval. Run at least {enough}.",
    "few-trials/one": "1 trial is too few for a 95 % interval. Run at least {enough}.",
    "noisy-trials": "Trials vary by {spread} (interquartile range over median). Stop other work on this"
    " machine, or add trials.",
    "failed-trials": "{failed} of {n} trials failed and are not in the figure. Read their logs first.",
    "mixed-environment": "The trials ran in {environments} different environments. Run all of them in one.",
    "superlinear-scaling": "{devices} devices reach {efficiency} of linear scaling, which is more than"
    " linear. Check the one-device baseline, and whether samples are counted per rank.",
    "collapsed-scaling": "{devices} devices reach only {efficiency} of linear scaling. Check the links"
    " between them, and the per-device batch.",
    "data-bound": "Steps waited for data {wait} of the time. Add loader workers, or compare with synthetic"
    " data.",
    "data-bound/waiting": "It loses {lost} to its data: {own} {unit}/s, {synthetic} on synthetic data; steps"
    " waited for data {wait} of the time: raise `workers`, or take a faster `loader`.",
    "data-bound/contending": "It loses {lost} to its data: {own} {unit}/s, {synthetic} on synthetic data;"
    " steps hardly waited for it, so the loader takes cores or device time from the training: lower"
    " `workers`, or take a `loader` that works elsewhere.",
    "never-settled": "Step times did not settle within {steps} steps. Run more steps, or look for drift in"
    " clocks, memory or data.",
    "window-too-short": "Only {steady} of {steps} steps are steady; {needed} are needed. Run more steps.",
    "warmup-past-window": "Still warming up after {floor} steps; the first {first} are left out. Set"
    " warmup.steps to {first} or more.",
    "warmup-past-window/program": "Still warming up after {floor} steps; the first {first} are left out. Add"
    " `--warmup {first}`, or a larger number.",
    "throttled": "Clocks were throttled ({reasons}) in {throttled} of {samples} samples. Improve cooling or"
    " power, or lock the clocks.",
    "device-shared": "Other processes (up to {most} at a time) used {devices} during the window. Stop them"
    " and run again.",
    "host-busy": "Other processes used {share} of the host's CPU time in the window. Stop them and run"
    " again.",
    "host-busy/node": "Other processes used {share} of {node}'s CPU time in the window. Stop them and run"
    " again.",
    "host-clock": "The program used a GPU, and its steps were timed by the host, which may only have queued"
    ' them. Give probe.start a clock: "cuda" or "jax", or "synchronous" where every step waits for the GPU.',
    "nan-loss": "The loss was not a finite number in {bad} of {reports} reports: lower the learning rate or"
    " check the loss scale.",
    "loss-not-falling": "The loss went from {before} to {after} over {steps} steps: check that the step"
    " really trains.",
    "wrong-layout": "{precision} ran in NCHW, the slow layout for tensor cores: use layout NHWC.",
    "fell-back": "Part of the step was done another way than it should ({first}): do not take it for the best"
    " that the device can do.",
    "fell-back/several": "Part of the step was done another way than it should ({first}, and {more} more in"
    " the rank's log): do not take it for the best that the device can do.",
    "straggler": "Rank {place} holds the others back: its own part of a step takes {own}, theirs {others},"
    " which costs {cost} of the throughput ({lost} {unit}/s): check its device, host and link.",
    "straggler/node": "Node {place} holds the others back: its own part of a step takes {own}, theirs"
    " {others}, which costs {cost} of the throughput ({lost} {unit}/s): check its device, host and link.",
    "straggler/late": "Rank {place} ends its steps later than the others by {excess} of a step; working and"
    " waiting cannot be separated here, so it costs at most {cost} of the throughput ({lost} {unit}/s):"
    " check its device, host and link.",
    "straggler/late-node": "Node {place} ends its steps later than the others by {excess} of a step; working"
    " and waiting cannot be separated here, so it costs at most {cost} of the throughput ({lost} {unit}/s):"
    " check its device, host and link.",
    "resumed": "The training was killed and resumed {count} times; its clocks never paused and hold {lost} s"
    " in which nothing that counts was trained: run it again in one piece where the time matters.",
    "resumed/once": "The training was killed and resumed once; its clocks never paused and hold {lost} s in"
    " which nothing that counts was trained: run it again in one piece where the time matters.",
    "resumed/damaged": "The training was killed and resumed (times: {count}), past damaged checkpoints"
    " ({skipped}); its clocks never paused and hold {lost} s in which nothing that counts was trained: run it"
    " again in one piece where the time matters.",
    "recipe-changed": "The recipe {recipe} was changed ({departures}): compare accuracy and time to train"
    " with nothing that followed it.",
    "target-not-reached": "{missed} of {decided} trials did not reach {target} and count as longer than any"
    " that did: train more epochs, or check the recipe.",
    "target-not-reached/best": "{missed} of {decided} trials did not reach {target} (best {metric} {best})"
    " and count as longer than any that did: train more epochs, or check the recipe.",
    "accuracy-spread": "The best {metric} of {seeds} seeds lies between {low} and {high}: train more seeds,"
    " and do not rank by one of them.",
    "training-uncounted": "{count} more of the program's processes or threads trained than the one that the"
    " figure is of. Train in one of them, or start them as ranks, as torchrun does.",
    "unequal-turns": "Optimizers stepped {turns} times, in no order that tells one round from the next: it is"
    " not certain what one step is. Call the probe after each round, or give --pattern a line of it.",
    "evaluation-in-steps": "Most steps evaluate: for {share} of the time a model was in evaluation mode with"
    " no backward pass, which is counted as training, as of a teacher. Without that the rate is {rate}"
    " {unit}/s.",
    "long-steps": "{count} of {steps} steps, one every {every}, take {share} of the time beyond a usual step"
    " ({usual}), as where a program evaluates or saves; without that the rate is {rate} {unit}/s. Where it is"
    ' no training, call the probe, and run.mark("eval") after it.',
    "long-steps/irregular": "{count} of {steps} steps take {share} of the time beyond a usual step ({usual}):"
    " the program evaluated, saved or was held up; without that the rate is {rate} {unit}/s. Where it is no"
    ' training, call the probe, and run.mark("eval") after it.',
    "lines-in-bursts": "The {lines} lines of steps came in {bursts} bursts, so step times are means over one."
    " Let the program flush each line (`python -u`, `stdbuf -oL`), and stop other work on this machine.",
}
