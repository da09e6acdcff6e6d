"""Logs of PaddlePaddle's trainers."""
