"""The model, once in each framework's words."""
