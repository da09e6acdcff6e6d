"""Published results as sourced data files, and where a result stands among them."""

from trainmark.logs.ledger.entry import LedgerEntry
from trainmark.logs.ledger.load import find, load, load_for, load_of
from trainmark.logs.ledger.standing import Standing, standing

__all__ = ["LedgerEntry", "Standing", "find", "load", "load_for", "load_of", "standing"]
