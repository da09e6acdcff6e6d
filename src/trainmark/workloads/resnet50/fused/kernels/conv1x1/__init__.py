"""1×1 convolutions, forward and backward."""
