"""What was scrubbed from a packed run, as the database has it: places and kinds, never values."""

from __future__ import annotations

from typing import Any

from trainmark.base.text import visible
from trainmark.server.database.models import SHORT
from trainmark.store.manifest import Manifest, PackError

MOST_NOTES, MOST_PLACES = 1000, 20
LARGEST_COUNT = 2**31 - 1


def scrubbed_of(manifest: Manifest) -> dict[str, Any]:
    """Return the number of all masked values and the first notes; PackError where a number cannot be."""
    for note in manifest.scrubbed:
        if not 0 < note.count <= LARGEST_COUNT:
            raise PackError(f"{note.count} masked values in {_plain(note.member)} cannot be.")
    return {
        "count": sum(note.count for note in manifest.scrubbed),
        "notes": [
            {
                "member": _plain(note.member),
                "kind": _plain(note.kind),
                "count": note.count,
                "places": [_plain(place) for place in note.places[:MOST_PLACES]],
            }
            for note in manifest.scrubbed[:MOST_NOTES]
        ],
    }


def _plain(text: str) -> str:
    return visible(text[:SHORT])[:SHORT]
