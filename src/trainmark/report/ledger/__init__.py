"""The ledger of published results: page, plot and text."""
