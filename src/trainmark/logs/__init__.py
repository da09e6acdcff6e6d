"""Other programs' logs, read as events; and the ledger of published results."""
