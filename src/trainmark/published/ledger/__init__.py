"""Published results as sourced data files, and where a result stands among them."""

from trainmark.published.ledger.entry import Entry
from trainmark.published.ledger.find import find
from trainmark.published.ledger.load import load, load_for, load_of
from trainmark.published.ledger.standing import Standing, standing
from trainmark.published.ledger.words import best_published

__all__ = ["Entry", "Standing", "best_published", "find", "load", "load_for", "load_of", "standing"]
