"""Logs of trainers in TensorFlow and Keras."""
