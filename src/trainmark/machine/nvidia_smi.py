"""Questions to nvidia-smi, asked once or again and again, and the fields that it has."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable

ONCE_SECONDS = 30
LOOP_MILLISECONDS = 500
UNKNOWN_FIELD = re.compile(r'Field "([^"]+)" is not a valid field')
NO_VALUE = re.compile(r"\[.*\]$|N/A$|Unknown|Requested functionality")
# By our names. Of a field that was renamed both: a driver that does not know one is asked again without it.
FIELDS = {
    "gpu": {
        "index": "index",
        "name": "name",
        "uuid": "uuid",
        "driver_version": "driver",
        "utilization.gpu": "utilization",
        "memory.used": "memory_used_mib",
        "memory.total": "memory_total_mib",
        "power.draw": "power_w",
        "temperature.gpu": "temperature",
        "clocks.sm": "clock_mhz",
        "clocks.max.sm": "clock_max_mhz",
        "clocks.applications.graphics": "clock_set_mhz",
        "clocks.applications.memory": "memory_clock_set_mhz",
        "power.limit": "power_limit_w",
        "persistence_mode": "persistence",
        "ecc.mode.current": "ecc",
        "ecc.errors.uncorrected.volatile.total": "ecc_errors",
        "mig.mode.current": "mig",
        "clocks_throttle_reasons.active": "throttle",
        "clocks_event_reasons.active": "throttle",
    },
    # The name comes last: it alone may have a comma in it.
    "compute-apps": {"gpu_uuid": "uuid", "pid": "pid", "used_memory": "memory_mib", "process_name": "name"},
}


class Query:
    """What is asked of a subject by our names, without what the driver has refused."""

    def __init__(self, subject: str, names: str) -> None:
        """Ask for these names, with a blank between."""
        wanted = names.split()
        self._subject = subject
        self._fields = {field: name for field, name in FIELDS[subject].items() if name in wanted}

    def command(self, *options: str) -> list[str] | None:
        """Return the command line; None where nvidia-smi is not installed."""
        smi = shutil.which("nvidia-smi")
        asked = f"--query-{self._subject}={','.join(self._fields)}"
        return [smi, asked, "--format=csv,noheader,nounits", *options] if smi else None

    def drop_refused(self, output: str) -> bool:
        """Whether the output refuses a field, which is then asked for no more."""
        refused = UNKNOWN_FIELD.search(output)
        return bool(refused and self._fields.pop(refused[1], None))

    def rows(self, output: str) -> list[dict[str, str]]:
        """Return what each line of CSV gives; `[N/A]`, `[Not Supported]` and their kin are left out."""
        names = list(self._fields.values())
        split = (line.split(", ", len(names) - 1) for line in output.splitlines())
        return [
            {name: value.strip() for name, value in zip(names, values) if has_value(value)}  # noqa: B905 (3.8)
            for values in split
            if len(values) == len(names)
        ]

    def once(self) -> tuple[list[dict[str, str]], str | None]:
        """Return the rows, and the error of nvidia-smi where it failed."""
        while command := self.command():
            try:
                done = subprocess.run(
                    command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=ONCE_SECONDS
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                return [], str(error)
            output = done.stdout.decode(errors="replace")
            if self.drop_refused(output):
                continue
            if done.returncode:
                return [], " ".join(output.split()) or f"nvidia-smi left with {done.returncode}"
            return self.rows(output), None
        return [], None


class QueryLoop:
    """One nvidia-smi that answers twice a second; nobody waits for it."""

    def __init__(self, query: Query, before_exec: Callable[[], None] | None = None) -> None:
        self._query = query
        self._before_exec = before_exec
        self._unread = b""
        self._process = self._started()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def rows(self) -> list[dict[str, str]]:
        """Return the rows that came since the call before."""
        if self._process is None or self._process.stdout is None:
            return []
        with contextlib.suppress(BlockingIOError):
            self._unread += os.read(self._process.stdout.fileno(), 1 << 16)
        if self._query.drop_refused(self._unread.decode(errors="replace")):
            self.close()
            self._unread, self._process = b"", self._started()
            return []
        *lines, self._unread = self._unread.split(b"\n")
        return self._query.rows(b"\n".join(lines).decode(errors="replace"))

    def close(self) -> None:
        if self._process is not None and self._process.stdout is not None:
            self._process.kill()
            self._process.stdout.close()
            self._process.wait()
        self._process = None

    def _started(self) -> subprocess.Popen[bytes] | None:
        command = self._query.command(f"--loop-ms={LOOP_MILLISECONDS}")
        if command is None:
            return None
        try:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=self._before_exec
            )
        except OSError:
            return None
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        return process


def has_value(text: str) -> bool:
    return bool(text.strip()) and not NO_VALUE.match(text.strip())


def number(text: str | None) -> float | None:
    """Return the number that the text is; None where it is none."""
    try:
        return float(text or "")
    except ValueError:
        return None
