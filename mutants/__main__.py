"""Mutation testing: plant each listed error in a copy of the package and see whether its tests fail.

`python -m mutants [--room measure] [--json] [--write]`; the mutants are the tables beside this file.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path

from mutants.mutant import HERE, Mutant, Package, Status, listed

RESULTS = HERE / "results.md"


def main() -> int:
    options = _options()
    mutants = [mutant for mutant in listed() if mutant.file.startswith(tuple(options.room or [""]))]
    results: list[tuple[Mutant, Status]] = []
    with tempfile.TemporaryDirectory() as folder:
        package = Package(Path(folder))
        for mutant in mutants:
            results.append((mutant, package.judge(mutant)))
            print(_row(*results[-1]), file=sys.stderr, flush=True)
    if options.write:
        RESULTS.write_text(_page(results), encoding="utf-8")
    print(json.dumps(_records(results), indent=1) if options.json else _summary(results))
    return any(status in (Status.STALE, Status.UNSOUND) for _, status in results)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--room", action="append", help="only files that begin so; may be repeated")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--write", action="store_true", help=f"replace {RESULTS.name}")
    return parser.parse_args()


def _summary(results: Iterable[tuple[Mutant, Status]]) -> str:
    """Count the outcomes by room, as a Markdown table."""
    counts: dict[str, Counter[Status]] = {}
    for mutant, status in results:
        counts.setdefault(mutant.room, Counter())[status] += 1
    counts["all"] = sum(counts.values(), Counter())
    rows = [
        f"| {room} | {total} | {killed} | {killed / total:.0%} |"
        for room, total, killed in (
            (room, each.total(), each[Status.KILLED]) for room, each in counts.items()
        )
    ]
    return "\n".join(["| room | mutants | killed | share |", "|---|---:|---:|---:|", *rows])


def _row(mutant: Mutant, status: Status) -> str:
    before, after = (text.strip().replace("|", "\\|").replace("\n", "⏎") for text in mutant.edit)
    return f"| {status.value} | {mutant.file} | `{before}` | `{after}` |"


def _page(results: list[tuple[Mutant, Status]]) -> str:
    head = f"# Mutants on {datetime.now(timezone.utc):%Y-%m-%d}\n\nWritten by `python -m mutants --write`.\n"
    table = ["| status | file | before | after |", "|---|---|---|---|", *(_row(*each) for each in results)]
    return "\n".join([head, _summary(results), "", *table, ""])


def _records(results: Iterable[tuple[Mutant, Status]]) -> list[dict[str, str]]:
    return [
        {"room": mutant.room, "file": mutant.file, "before": mutant.before, "after": mutant.after,
         "status": status.value}
        for mutant, status in results
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
