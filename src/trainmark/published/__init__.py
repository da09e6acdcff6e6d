"""Other people's results: readers of their logs, their protocols, a ledger, and an audit."""
