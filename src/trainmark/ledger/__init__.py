"""Published results as sourced data files, and where a result stands among them."""

from trainmark.ledger.entry import Entry
from trainmark.ledger.find import find
from trainmark.ledger.load import load
from trainmark.ledger.standing import Standing, standing
from trainmark.ledger.words import best_published

__all__ = ["Entry", "Standing", "best_published", "find", "load", "standing"]
