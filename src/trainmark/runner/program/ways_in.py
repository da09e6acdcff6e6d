"""Programs that are found before those of the same name, and give back the hooks that a command takes away.

A command that sets PYTHONPATH itself, as `env PYTHONPATH=. python train.py` does, would start Python without
our `sitecustomize`. Each of these adds it again, leaves PATH and becomes the program that was meant.
"""

from __future__ import annotations

import shutil
from pathlib import Path

FOLDER = Path("trainmark/inside/hooks/injected/bin")
# What starts Python by a path of its own is found by name as well; its children have its PYTHONPATH.
NAMES = (
    "python",
    "python3",
    *(f"python3.{minor}" for minor in range(7, 20)),
    "torchrun",
    "accelerate",
    "deepspeed",
)
SCRIPT = """\
#!/bin/sh
name=${0##*/} here=${0%/*}
injected=${here%/*}
code=${injected%/trainmark/inside/hooks/injected}
case ":$PYTHONPATH:" in
*":$injected:"*) ;;
*) [ -z "$TRAINMARK_EVENTS" ] || export PYTHONPATH="$injected:$code${PYTHONPATH:+:$PYTHONPATH}" ;;
esac
set -f
IFS=:
found= rest=
for folder in $PATH; do
  [ "$folder" = "$here" ] && continue
  rest=$rest:$folder
  [ -z "$found" ] && [ -f "${folder:-.}/$name" ] && [ -x "${folder:-.}/$name" ] && found=${folder:-.}/$name
done
export PATH="${rest#:}"
[ -n "$found" ] && exec "$found" "$@"
echo "$name: not found" >&2
exit 127
"""


def make_ways_in(code: Path) -> None:
    """Only for names that there are: who looks whether one exists is told the truth."""
    folder = code / FOLDER
    folder.mkdir()
    for name in filter(shutil.which, NAMES):
        script = folder / name
        script.write_text(SCRIPT, encoding="utf-8")
        script.chmod(0o755)
