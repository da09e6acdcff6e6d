"""Change points and drifts of a history, with intervals."""

from trainmark.history.changes.detect import changes
from trainmark.history.changes.drift import drifts
from trainmark.history.changes.model import Change, Drift

__all__ = ["Change", "Drift", "changes", "drifts"]
