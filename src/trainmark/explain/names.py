"""What kernel classes, causes of idle time and holders of memory are called, and the colour of each."""

from __future__ import annotations

from trainmark.view.message import _

CLASSES = {
    "convolution": _("convolution"),
    "matrix product": _("matrix product"),
    "attention": _("attention"),
    "normalisation": _("normalisation"),
    "elementwise": _("elementwise"),
    "reduction": _("reduction"),
    "optimiser": _("optimiser"),
    "copy": _("copy"),
    "communication": _("communication"),
    "other": _("other"),
}
CAUSES = {
    "launch": _("host too late"),
    "python": _("Python between operators"),
    "synchronisation": _("synchronisation"),
    "loader": _("data loader"),
    "communication": _("communication"),
    "dependency": _("stream order"),
    "clocks": _("clocks"),
    "power": _("power"),
    "other": _("other cause"),
}
HOLDERS = {
    "weights": _("weights"),
    "gradients": _("gradients"),
    "optimizer": _("optimizer"),
    "activations": _("activations"),
    "buffers": _("buffers"),
    "inputs": _("inputs"),
    "workspace": _("workspace"),
    "fragmentation": _("fragmentation"),
    "other": _("other"),
}
# Classes of explain.css.
IDLE_LOOK, OVERLAP_LOOK, REST_LOOK = "k-idle", "k-overlap", "k-rest"


def class_name(name: str) -> str:
    """Return the name in the reader's language; one that is not listed is shown as it is."""
    return CLASSES.get(name, name)


def cause_name(name: str, device: str | None = None) -> str:
    """Return the name of a cause; on a CPU, where device and host are one, nothing is launched."""
    return CAUSES.get("python" if (name, device) == ("launch", "cpu") else name, name)


def holder_name(name: str) -> str:
    return HOLDERS.get(name, name)


def class_look(name: str) -> str:
    """Return the colour of a kernel class; one that is not known looks like `other`."""
    order = list(CLASSES)
    return f"k-{order.index(name if name in CLASSES else 'other')}"


def look(kind: str, name: str) -> str:
    """Return the colour of a part of a step or of a difference."""
    return {"idle": IDLE_LOOK, "overlap": OVERLAP_LOOK, "rest": REST_LOOK}.get(kind) or class_look(name)
