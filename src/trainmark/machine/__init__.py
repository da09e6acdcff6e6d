"""This machine: facts, samples, checks before a run, and the frameworks' environments.

What is sent to nodes is standard library only, Python 3.8 or newer: `reading`, `cpu`, `network`,
`nvidia_smi`, `process_tree`, `samples`, `handshake` and `*_on_node`.
"""
