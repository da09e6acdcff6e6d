"""A folder for each class, a file for each picture."""

from __future__ import annotations

from trainmark.data.records import Loose


class Folder(Loose):
    name = "folder"


FORMAT = Folder()
