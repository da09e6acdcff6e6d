"""Export: a run's results in the forms that others' tools read, one file per form."""
