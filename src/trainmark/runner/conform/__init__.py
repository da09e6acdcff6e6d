"""Do the frameworks train the same model? Five steps of each against a float64 reference."""
