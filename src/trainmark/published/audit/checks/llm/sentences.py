"""Sentences that give operations and utilisation together: their quotient has to be the peak of a device."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmark.published.audit.claims.named_devices import NamedDevice, devices_for, devices_in_words
from trainmark.published.audit.claims.precision import precisions_in
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.number import parse_number
from trainmark.published.audit.report.report import Passage, Report

SENTENCE = re.compile(r"(?<=[.;!?。；])\s+|。")
OPERATIONS = re.compile(
    r"(?<![\d.,-])(\d{1,4}(?:\.\d{1,3})?) ?(?:T|tera) ?FLOP(?:/?s|S)?(?:/s(?:ec)?)?", re.I
)
UTILISATION = re.compile(
    r"(?<![\d.,~-])(\d{1,3}(?:\.\d{1,2})?) ?% (?:\w+ ){0,2}?"
    r"(?:MFU|model FLOPs? utili[sz]ation|of (?:the )?(?:theoretical |hardware )?peak)"
    r"|(?:MFU|model FLOPs? utili[sz]ation)(?: \(MFU\))?(?: of| is|:| =)? (?:about |around |~)?"
    r"(\d{1,3}(?:\.\d{1,2})?) ?%",
    re.I,
)
ROUNDING = 0.03


def check(report: Report) -> Iterator[Finding]:
    for passage in report.prose:
        for sentence in SENTENCE.split(passage.text[:4000]):
            yield from _sentence(report, passage, sentence)


def _sentence(report: Report, passage: Passage, sentence: str) -> Iterator[Finding]:
    rates, shares = OPERATIONS.findall(sentence), UTILISATION.findall(sentence)
    if len(shares) != 1:
        return
    claimed = parse_number(shares[0][0] or shares[0][1])
    if claimed is None:
        return
    if claimed.value > 100:
        message = "no device does more than its peak."
        yield Finding(
            "past-physical-limit",
            Severity.ERROR,
            report.where(passage.line),
            f"{claimed.value:g} %",
            "at most 100 %",
            message,
        )
        return
    achieved = parse_number(rates[0]) if len(rates) == 1 else None
    devices = devices_in_words((sentence,)) or devices_for(report, (passage.text,))
    if achieved is None or len(devices) != 1 or "fp8" in precisions_in(sentence) or claimed.value <= 0:
        return
    yield from _against(report, passage, sentence, devices[0], achieved.value * 1e12, claimed.value / 100)


def _against(
    report: Report, passage: Passage, sentence: str, device: NamedDevice, achieved: float, share: float
) -> Iterator[Finding]:
    peaks = device.dense_peaks()
    taken = achieved / share
    # A sentence that quotes the peak gives what the share is of, not what was reached.
    if any(abs(achieved - times * peak) <= ROUNDING * peak for peak in peaks for times in (1, 2)):
        return
    if not peaks or any(abs(taken - peak) <= ROUNDING * peak for peak in peaks) or achieved > max(peaks):
        return
    derived = f"{achieved / peaks[0]:.1%}"
    is_sparse = abs(taken - 2 * peaks[0]) <= ROUNDING * 2 * peaks[0]
    reason = ", its rate with 2:4 sparsity" if is_sparse else ""
    yield Finding(
        "sparse-peak" if is_sparse else "mfu-mismatch",
        Severity.ERROR,
        report.where(passage.line),
        claimed=f"{share:.1%}",
        derived=derived,
        message=(
            f"the figure takes {taken / 1e12:,.0f} TFLOP/s for the peak of {device.family}{reason}; "
            f"of its dense peak it is {derived}."
        ),
    )
