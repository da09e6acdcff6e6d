"""Taking a packed file in: checked, recomputed, made durable, stored in one transaction, acknowledged."""
