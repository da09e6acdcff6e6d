"""Paddle's way: pictures in folders, and `train_list.txt` with a line "path label" for each of them."""

from __future__ import annotations

from trainmark.data.records import Loose


class List(Loose):
    name = "list"
    list_ending = "_list.txt"
    forbidden = "\n\r\t "  # Paddle splits a line at its blanks


FORMAT = List()
