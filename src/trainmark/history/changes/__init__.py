"""Change points of a history, with intervals."""

from trainmark.history.changes.detect import changes
from trainmark.history.changes.model import Change

__all__ = ["Change", "changes"]
