"""What Trainmark itself costs, measured against its targets: `make bench`."""
