"""What all frameworks' ResNet-50 share: recipe, command line, training loop, and what is compared of them."""
