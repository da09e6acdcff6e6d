"""A team's server, seen from here: packed runs sent to it, and trials read from it. Standard library only."""

from __future__ import annotations

import ipaddress
import json
import os
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, urlencode, urlsplit

from trainmark import __version__
from trainmark.base.errors import UserError
from trainmark.base.files import home, sha256_of

TOKEN, SERVER = "TRAINMARK_TOKEN", "TRAINMARK_SERVER"
API = "/api/v1"
MEDIA_TYPE = "application/vnd.trainmark.store"
ATTEMPTS = 6
SECONDS = 300.0
LONGEST_WAIT = 30.0
LARGEST_ANSWER_BYTES = 1 << 30
# Nothing was decided: the same request may be sent again.
TRY_AGAIN = (429, 502, 503, 504, 507)


class RemoteError(UserError):
    """What the server answered, or why it could not be reached."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would take the token elsewhere."""

    def redirect_request(self, *_arguments: Any, **_named: Any) -> None:
        return None


class _Counted:
    """A file that tells how much of it has been read."""

    def __init__(self, file: BinaryIO, progress: Callable[[int], None]) -> None:
        self._file, self._progress, self._sent = file, progress, 0

    def read(self, size: int = -1) -> bytes:
        chunk = self._file.read(size)
        self._sent += len(chunk)
        self._progress(self._sent)
        return chunk


class Remote:
    """`wait` is called between attempts, with the seconds; tests pass their own."""

    def __init__(self, url: str, token: str | None, wait: Callable[[float], None] = time.sleep) -> None:
        self.url, self._token, self._wait = _checked(url), token, wait
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if _is_loopback(urlsplit(self.url).hostname or ""):
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def push(self, file: Path, progress: Callable[[int], None] = lambda sent: None) -> dict[str, Any]:
        """Send a packed file until the server says that it is stored; sent twice, it is stored once."""
        digest, size = sha256_of(file)
        headers = {"Content-Type": MEDIA_TYPE, "Content-Length": str(size), "X-Content-SHA256": digest}

        def send() -> Any:
            with file.open("rb") as content:
                return self._send(f"{API}/packs", headers, _Counted(content, progress))

        answer = self._retried(send)
        if not isinstance(answer, dict) or answer.get("sha256") != digest:
            raise RemoteError(
                f"{self.url} did not confirm the file; it is no Trainmark server of this version."
            )
        return answer

    def get(self, path: str, **parameters: Any) -> Any:
        """Return what an operation of the API answers."""
        query = urlencode({name: value for name, value in parameters.items() if value is not None})
        place = f"{API}{quote(path)}" + (f"?{query}" if query else "")
        return self._retried(lambda: self._send(place, {}, None))

    def trials(self, run: str | None) -> list[dict[str, Any]]:
        """Return the rows of all trials, or of one run's."""
        rows: list[dict[str, Any]] = []
        after: int | None = 0
        while after is not None:
            page = self.get("/trials", run=run, after=after)
            rows += page["trials"]
            after = page["next"]
        return rows

    def _retried(self, send: Callable[[], Any]) -> Any:
        for attempt in range(ATTEMPTS):
            try:
                return send()
            except urllib.error.HTTPError as error:
                if error.code not in TRY_AGAIN or attempt == ATTEMPTS - 1:
                    raise RemoteError(self._refusal(error)) from error
                asked = error.headers.get("Retry-After", "")
                self._wait(min(float(asked) if asked.isdecimal() else 2.0**attempt, LONGEST_WAIT))
            except (OSError, urllib.error.URLError) as error:
                reason = getattr(error, "reason", None) or error
                if attempt == ATTEMPTS - 1 or _is_certificate(reason):
                    raise RemoteError(f"{self.url} cannot be reached: {reason}.") from error
                self._wait(min(2.0**attempt, LONGEST_WAIT))
        raise AssertionError("unreachable")

    def _send(self, path: str, headers: dict[str, str], data: Any) -> Any:
        own = {"User-Agent": f"trainmark/{__version__}", "Accept": "application/json", **headers}
        if self._token:
            own["Authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(self.url + path, data, own)
        with self._opener.open(request, timeout=SECONDS) as response:
            body = response.read(LARGEST_ANSWER_BYTES)
        try:
            return json.loads(body)
        except ValueError as error:
            raise RemoteError(f"{self.url} answers, but is no Trainmark server.") from error

    def _refusal(self, error: urllib.error.HTTPError) -> str:
        try:
            answer = json.loads(error.read(1 << 20))
            sentence, differences = str(answer["error"]), list(map(str, answer.get("differences", ())))
        except (ValueError, LookupError, TypeError, OSError):
            return f"{self.url} answered {error.code} {error.reason}."
        more = f" And {len(differences) - 1} more differences." if len(differences) > 1 else ""
        return f"{self.url}: {sentence}{more}"


def run_of(url: str) -> tuple[str, str | None]:
    """Return the server and the run's UUID of an address such as `https://host/runs/UUID`."""
    base, separator, rest = url.rstrip("/").partition("/runs/")
    return base.removesuffix(API), rest.partition("/")[0] if separator else None


def find_token(file: Path | None = None) -> str | None:
    """Return the token of `$TRAINMARK_TOKEN`, else of a file that only its owner can read."""
    if token := os.environ.get(TOKEN, "").strip():
        return token
    path = file or home() / "token"
    try:
        with path.open(encoding="utf-8") as opened:
            if stat.S_IMODE(os.fstat(opened.fileno()).st_mode) & 0o077:
                raise RemoteError(f"{path} can be read by others; run `chmod 600 {path}`.")
            return opened.read(4096).strip() or None
    except FileNotFoundError:
        if file is not None:
            raise RemoteError(f"there is no file {file}.") from None
        return None
    except (OSError, UnicodeError) as error:
        raise RemoteError(f"{path} cannot be read: {error}.") from error


def _checked(url: str) -> str:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not host or parts.username is not None:
        raise RemoteError(f"'{url[:200]}' is no address of a server; give https://HOST or https://HOST:PORT.")
    if parts.scheme == "http" and not _is_loopback(host):
        raise RemoteError(f"http://{host} would send the token unencrypted; use https.")
    return url.rstrip("/")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_certificate(reason: Any) -> bool:
    import ssl

    return isinstance(reason, ssl.SSLCertVerificationError)
