"""Several ranks of one step: who waits for whom, and what each collective reaches of the fabric."""
