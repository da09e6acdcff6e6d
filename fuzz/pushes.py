"""A server that is killed again and again while twenty clients push: what it has acknowledged must be there.

`python fuzz/pushes.py --runs 300 --kills 40` for SQLite, and with `--postgresql` for a PostgreSQL of its own.
The last line is `N acknowledged (B of them before a kill), K kills, M finds`; it exits with 1 on a find.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.serving.crashes import damage, push_through_crashes
from benchmarks.serving.packs import MadeRun, packed
from benchmarks.serving.postgres import cluster
from benchmarks.serving.process import ServerProcess

from trainmark.server.access.tokens import Role


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--postgresql", action="store_true")
    given = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(cluster()) if given.postgresql else None
        made = [MadeRun(name=f"push-{n}", day=n / 10, rates=(80.0 + n % 3, 81.0)) for n in range(given.runs)]
        files = [packed(folder / "packs", run) for run in made]
        server = ServerProcess(folder / "data", url, "--pushes", "1000000")
        token = server.token("pusher", Role.PUSH)
        server.start()
        try:
            outcome = push_through_crashes(server, files, token, given.kills, given.seed)
        finally:
            server.kill()
        finds = [*outcome.refused, *damage(server, outcome.acknowledged)]
    print("\n".join(finds))
    print(
        f"{len(outcome.acknowledged)} acknowledged ({outcome.acknowledged_before_a_kill} of them before a"
        f" kill), {outcome.kills} kills, {outcome.interrupted} pushes cut off, {len(finds)} finds"
    )
    return 1 if finds else 0


if __name__ == "__main__":
    sys.exit(main())
