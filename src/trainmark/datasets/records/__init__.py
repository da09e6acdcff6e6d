"""What the formats are made of."""
