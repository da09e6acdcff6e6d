"""Open files: how many the connections to a number of nodes need, and the limit raised to that."""

from __future__ import annotations

import resource
from pathlib import Path

from trainmark.errors import UserError
from trainmark.launch.job.rank_files import OPEN_LOGS

# The socket of its connection; what the carriers print for people is in one file.
PER_NODE = 1
# A log and the times of its bytes.
PER_LOG = 2
# The run's own files, the epoll, imports, and the pipes of a command that is being started.
RESERVE = 96
OPEN_FILES = Path("/proc/self/fd")  # Linux; elsewhere the reserve must do


def needed(nodes: int, already_open: int = 0) -> int:
    """Open files of this process while it is connected to so many nodes at once."""
    return already_open + nodes * PER_NODE + OPEN_LOGS * PER_LOG + RESERVE


def open_files() -> int:
    """Count the files that this process has open now: a caller that embeds the launcher may have many.

    Counting opens a file itself, so it is done under the hard limit: the soft one may be reached already.
    """
    if not OPEN_FILES.is_dir():
        return 0
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        return len(list(OPEN_FILES.iterdir()))
    except OSError:
        return hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def require_descriptors(nodes: int) -> None:
    """Raise the soft limit of open files to what is needed; UserError where the hard limit forbids that."""
    wanted = needed(nodes, open_files())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise UserError(
            f"{nodes:,} nodes need {wanted:,} open files, and this process may open {hard:,} at most "
            f"(`ulimit -Hn`); raise the hard limit (`nofile` in /etc/security/limits.d/, then log in anew; "
            f"`--ulimit nofile={wanted}` for a container), or use fewer nodes."
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
