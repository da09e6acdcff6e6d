"""Doubts: the reasons not to take a figure at its word, each with what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class DoubtCode(str, Enum):
    """Stable names; scripts match on them."""

    FEW_TRIALS = "few-trials"
    NOISY_TRIALS = "noisy-trials"
    FAILED_TRIALS = "failed-trials"
    WINDOW_TOO_SHORT = "window-too-short"
    WARMUP_PAST_WINDOW = "warmup-past-window"
    NEVER_SETTLED = "never-settled"
    DATA_BOUND = "data-bound"
    THROTTLED = "throttled"
    DEVICE_SHARED = "device-shared"
    HOST_BUSY = "host-busy"
    HOST_CLOCK = "host-clock"
    SCOPE_AMBIGUOUS = "scope-ambiguous"
    SUPERLINEAR = "superlinear-scaling"
    COLLAPSED_SCALING = "collapsed-scaling"
    NAN_LOSS = "nan-loss"
    LOSS_NOT_FALLING = "loss-not-falling"
    COPIED_LOGS = "copied-logs"
    MEAN_OF_RATES = "mean-of-rates"
    RUN_CUT_SHORT = "run-cut-short"
    OUT_OF_ORDER = "out-of-order"
    LINES_MISSING = "lines-missing"
    SETTINGS_CONFLICT = "settings-conflict"
    UNEVEN_SPEED = "uneven-speed"
    WHOLE_RUN_DIFFERS = "whole-run-differs"
    OWN_FIGURE = "own-figure"
    UNKNOWN_SHAPE = "unknown-shape"
    WRONG_LAYOUT = "wrong-layout"
    FELL_BACK = "fell-back"
    STRAGGLER = "straggler"
    MIXED_ENVIRONMENT = "mixed-environment"
    RESUMED = "resumed"
    TARGET_NOT_REACHED = "target-not-reached"
    ACCURACY_SPREAD = "accuracy-spread"
    RECIPE_CHANGED = "recipe-changed"


@dataclass(frozen=True)
class Doubt:
    """One doubt about one figure; `message` is a whole sentence that ends in what to do."""

    code: DoubtCode
    message: str
