"""Whether each node answers at all."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from trainmark.doctor.examined import Examined
from trainmark.doctor.finding import About, Check, Finding, bad, ok

# What ssh, srun and shells say, and what helps; the first that matches.
FIXES = (
    (r"permission denied", "give it your key: `ssh-copy-id {node}`"),
    (
        r"host key verification|identification has changed|no .* host key is known",
        "compare its fingerprint with what its administrator says, then accept it once: `ssh {node} true`",
    ),
    (r"resolve|not known|unknown host", "add it to DNS, /etc/hosts or ~/.ssh/config: `getent hosts {node}`"),
    (r"refused", "start sshd there, or name its port in ~/.ssh/config: `ssh {node} true`"),
    (
        r"python3?.*not found",
        "install Python 3.9 or newer there: `ssh {node} python3 -V`",
    ),
    (r"SyntaxError|ModuleNotFound", "its python3 is too old or not whole: `ssh {node} python3 -V`"),
)
ELSE = "try `ssh {node} true`, or leave it out with --exclude {node}"


def find(examined: Examined) -> Iterator[Finding]:
    for node in examined.nodes:
        if node.facts is not None:
            yield ok(node.name, "yes")
        else:
            trouble = node.trouble or ""
            yield bad(node.name, "no", f"it does not answer: {trouble}", fix_of(node.name, trouble))


def fix_of(node: str, trouble: str) -> str:
    fitting = (fix for pattern, fix in FIXES if re.search(pattern, trouble, re.IGNORECASE))
    return next(fitting, ELSE).format(node=shlex.quote(node))


CHECK = Check("answers", About.REACH, find, essential=True)
