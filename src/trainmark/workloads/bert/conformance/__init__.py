"""The float64 reference of this family, forward and backward, and what it gives."""
