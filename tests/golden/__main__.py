"""`python -m tests.golden`: show how outputs differ from the expected ones, or take them over."""

import argparse
import sys
import tempfile
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from golden import EXPECTED, Sandbox, commands, difference

parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
parser.add_argument("--update", action="store_true", help="write what differs to expected/")
parser.add_argument("names", nargs="*", metavar="NAME", help="a part of an output's name; all without any")
arguments = parser.parse_args()
known, changed = commands(), 0
with tempfile.TemporaryDirectory() as folder, closing(Sandbox(Path(folder))) as sandbox:
    for name, line in known.items():
        if arguments.names and not any(part in name for part in arguments.names):
            continue
        output = sandbox.output(name, line)
        if changes := difference(name, output):
            changed += 1
            print(f"updated {name}" if arguments.update else changes)
            if arguments.update:
                (EXPECTED / name).write_bytes(output.encode())
for path in EXPECTED.iterdir():
    if arguments.update and path.name not in known:
        path.unlink()
        print(f"removed {path.name}")
sys.exit(changed > 0 and not arguments.update)
