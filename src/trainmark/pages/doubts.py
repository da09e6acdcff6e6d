"""The names of doubts: their codes in English, of which every other language has its own."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.view.message import Message, _, joined

CODES = (
    *(_("few-trials"), _("noisy-trials"), _("failed-trials"), _("window-too-short")),
    *(_("warmup-past-window"), _("never-settled"), _("data-bound"), _("throttled"), _("device-shared")),
    *(_("host-busy"), _("host-clock"), _("scope-ambiguous"), _("superlinear-scaling")),
    *(_("collapsed-scaling"), _("nan-loss"), _("loss-not-falling"), _("copied-logs"), _("mean-of-rates")),
    *(_("run-cut-short"), _("out-of-order"), _("lines-missing"), _("settings-conflict")),
    *(_("uneven-speed"), _("whole-run-differs"), _("own-figure"), _("unknown-shape"), _("wrong-layout")),
    *(_("fell-back"), _("straggler"), _("mixed-environment"), _("resumed"), _("target-not-reached")),
    *(_("accuracy-spread"), _("recipe-changed"), _("training-uncounted"), _("unequal-turns")),
    *(_("evaluation-in-steps"), _("long-steps"), _("lines-in-bursts")),
)
KNOWN = {str(code): code for code in CODES}


def doubt_name(code: str) -> str:
    """Return the name of a doubt; one that a newer version has made stays as it is."""
    return KNOWN.get(code, code)


def doubt_names(codes: Sequence[str]) -> Message:
    return joined(list(map(doubt_name, codes)), ", ")
