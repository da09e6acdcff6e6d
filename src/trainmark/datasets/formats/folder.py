"""A folder for each class, a file for each picture."""

from __future__ import annotations

from trainmark.datasets.records.format import Loose


class Folder(Loose):
    name = "folder"


FORMAT = Folder()
