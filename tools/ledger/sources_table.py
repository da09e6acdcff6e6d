"""Writes the table of sources into docs/ledger.md, and the number of rows above it.

PYTHONPATH=src python tools/ledger/sources_table.py
"""

import re
from collections import Counter
from pathlib import Path

from trainmark.logs.ledger import load

PAGE = Path(__file__).parents[2] / "docs" / "ledger.md"


def main() -> None:
    entries = load()
    rows = Counter(entry.source for entry in entries)
    origins = {entry.source: entry.origin for entry in entries}
    lines = [
        f"| `{source}` | {origin.title} | {origin.date or '–'} | {origin.confidence} | {rows[source]} |\n"
        for source, origin in sorted(origins.items())
    ]
    text = PAGE.read_text(encoding="utf-8")
    text = re.sub(
        r"(?:^\| `[^`]+` \|.*\| \d+ \|\n)+", lambda _: "".join(lines), text, count=1, flags=re.MULTILINE
    )
    text = re.sub(r"[\d,]+ rows from \d+ sources", f"{len(entries)} rows from {len(rows)} sources", text)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
