"""What every family's training in one framework has in common: device, ranks, clock, peaks, facts."""
