"""Hyper-parameters, LARS, mixup and loss scaling."""
