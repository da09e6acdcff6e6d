"""What the ranks of other machines print and write, kept in the trial's folder here."""

from __future__ import annotations

import io
import re
from collections import OrderedDict
from collections.abc import Sequence

from trainmark.launch.agent.log import Log
from trainmark.launch.agent.wire import SENT_HOME
from trainmark.launch.job.job import Job

SAMPLES = "samples.jsonl"
# A name is the node's word: it must not lead anywhere else.
RANK_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
# Logs open at the same time; the one not written to for longest is closed until its rank prints again.
OPEN_LOGS = 64


class RankFiles:
    """`trouble` is the first error that kept something from being kept whole.

    `bytes_written` counts what grew in the ranks' events and profiles.
    """

    def __init__(self, job: Job, secrets: Sequence[str]) -> None:
        self.trouble: OSError | None = None
        self.bytes_written = 0
        self._job = job
        self._secrets = secrets
        self._logs: dict[int, Log] = {}
        self._open: OrderedDict[int, Log] = OrderedDict()
        self._samples: io.FileIO | None = None

    def add_output(self, rank: int, chunk: bytes, moment: float) -> None:
        log = self._logs.get(rank)
        if log is None:
            log = self._logs[rank] = Log(self._job.log(rank), self._secrets)
        self._open[rank] = log
        self._open.move_to_end(rank)
        if len(self._open) > OPEN_LOGS:
            self._open.popitem(last=False)[1].release()
        log.add(chunk, moment)
        self.trouble = self.trouble or log.trouble

    def add_growth(self, part: str, name: str, grown: bytes) -> None:
        """Append to a file of events or of a profile."""
        if part not in SENT_HOME or not RANK_FILE.fullmatch(name):
            return
        try:
            (self._job.folder / part).mkdir(exist_ok=True)
            with (self._job.folder / part / name).open("ab") as file:
                self.bytes_written += file.write(grown)
        except OSError as error:
            self.trouble = self.trouble or error

    def add_samples(self, lines: bytes) -> None:
        """Twice a second from every node, so the file stays open."""
        try:
            if self._samples is None:
                self._samples = (self._job.folder / SAMPLES).open("ab", buffering=0)
            while lines:
                lines = lines[self._samples.write(lines) :]
        except OSError as error:
            self.trouble = self.trouble or error

    def close(self) -> None:
        for log in self._logs.values():
            log.close()
        self._logs.clear()
        self._open.clear()
        if self._samples is not None:
            self._samples.close()
            self._samples = None
