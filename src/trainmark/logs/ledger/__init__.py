"""Published results as sourced data files, and where a result stands among them."""

from trainmark.logs.ledger.entry import LedgerEntry
from trainmark.logs.ledger.find import find
from trainmark.logs.ledger.load import load, load_for, load_of
from trainmark.logs.ledger.standing import Standing, best_published, standing

__all__ = ["LedgerEntry", "Standing", "best_published", "find", "load", "load_for", "load_of", "standing"]
