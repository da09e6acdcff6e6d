"""The stem: 7×7 convolution and max-pooling, forward and backward."""
