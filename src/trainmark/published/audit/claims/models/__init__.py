"""What reports say of the models that they train."""
