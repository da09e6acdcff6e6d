"""Doctor: what is wrong on a node or different between nodes, found before a run; nothing is changed."""
