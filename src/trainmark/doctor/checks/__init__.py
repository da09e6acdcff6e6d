"""One check a file, each with a `CHECK`: what it finds in what the nodes told."""
