"""ResNet-50 v1.5: one file per framework, all on one recipe and one command line."""
