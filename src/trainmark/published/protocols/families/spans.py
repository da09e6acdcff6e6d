"""Which lines make the figure, as the scripts compute it from warm-up and train batches."""

from __future__ import annotations

from trainmark.published.protocols.protocol import Window
from trainmark.published.protocols.rule import Span

# NVIDIA's TensorFlow trainer does not print its first 20 steps.
TENSORFLOW_HIDES = 20


def plain(window: Window, ranks: int) -> Span:
    return Span(window.warmup, window.train, window.train - window.warmup)


def from_threshold(threshold: int, window: Window) -> Span:
    """Up to the threshold the warm-up is the threshold; above it, the threshold is taken off once more."""
    first = threshold if window.warmup <= threshold else window.warmup - threshold
    return Span(first, window.train, window.train - first)


def mxnet(window: Window, ranks: int) -> Span:
    return from_threshold(20, window)


def mxnet_bert(window: Window, ranks: int) -> Span:
    return from_threshold(100, window)


def mxnet_time(window: Window, ranks: int) -> Span:
    """Every rank prints, so the n-th step ends at line n × ranks."""
    first = max(20, window.warmup)
    return Span(first * ranks, window.train * ranks, window.train - first)


def after_hidden(window: Window, ranks: int) -> Span:
    return Span(
        window.warmup - TENSORFLOW_HIDES, window.train - TENSORFLOW_HIDES, window.train - window.warmup
    )


def after_hidden_time(window: Window, ranks: int) -> Span:
    """One line later than it should be, and divided by what is really between: 99 steps for 100."""
    first, last = window.warmup - TENSORFLOW_HIDES + 1, window.train - TENSORFLOW_HIDES
    return Span(first, last, last - first)


def every_tenth(window: Window, ranks: int) -> Span:
    return Span(max(20, window.warmup) // 10, window.train // 10, window.train - window.warmup)


def every_hundredth(window: Window, ranks: int) -> Span:
    first = 1 if window.warmup <= 100 else window.warmup // 100
    return Span(first, window.train // 100, window.train - window.warmup)
