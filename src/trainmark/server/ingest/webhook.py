"""The webhook: a change that a push made certain is posted to an address of the team's, once."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
from collections.abc import Sequence
from dataclasses import asdict
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from trainmark import __version__
from trainmark.pages.history_cells import percent_change
from trainmark.server.access import tokens
from trainmark.server.database.engine import reading, writing
from trainmark.server.database.overview_queries import changes_of_results, doubts_of_results
from trainmark.server.database.rows import ChangeRow

# Seconds before the second and the third try.
PAUSES = (1.0, 10.0)
ANSWER_SECONDS = 10
END_SECONDS = 5
MOST_WAITING = 200
MOST_FACTS = 3
TOO_MANY = 429


class _NoRedirect(HTTPRedirectHandler):
    """The address is the admin's choice, and nobody else's."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Webhook:
    """Posts changes to `address`; what could not be posted is a line of the audit log."""

    def __init__(self, address: str | None, engine: Engine, pauses: Sequence[float] = PAUSES) -> None:
        self._address, self._engine, self._pauses = address, engine, pauses
        self._waiting: queue.Queue[tuple[Sequence[int], str] | None] = queue.Queue(MOST_WAITING)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="webhook", daemon=True)

    def start(self) -> None:
        if self._address is not None:
            self._thread.start()

    def close(self) -> None:
        """Wait a few seconds for the post that is under way."""
        if self._thread.is_alive():
            self._ending.set()
            with contextlib.suppress(queue.Full):
                self._waiting.put_nowait(None)
            self._thread.join(END_SECONDS)

    def tell(self, result_ids: Sequence[int], server: str) -> None:
        """Post the changes that begin at these results; links lead to `server`. Returns at once."""
        if self._address is None or not result_ids:
            return
        try:
            self._waiting.put_nowait((result_ids, server))
        except queue.Full:
            self._note(f"results {result_ids}", f"{MOST_WAITING} others wait to be posted")

    def _work(self) -> None:
        while (asked := self._waiting.get()) is not None:
            result_ids, server = asked
            try:
                with reading(self._engine) as connection:
                    rows = changes_of_results(connection, result_ids)
                    doubts = doubts_of_results(connection, result_ids)
            except DBAPIError as error:
                self._note(f"results {result_ids}", str(error.orig))
                continue
            for row in rows:
                if failure := self._post(json.dumps(body(row, doubts[row.result_id], server)).encode()):
                    self._note(f"case {row.case_id}", failure)

    def _post(self, data: bytes) -> str | None:
        """Return why it could not be posted."""
        assert self._address is not None
        headers = {"Content-Type": "application/json", "User-Agent": f"trainmark/{__version__}"}
        request = Request(self._address, data, headers, method="POST")
        for pause in (*self._pauses, None):
            try:
                with build_opener(_NoRedirect).open(request, timeout=ANSWER_SECONDS):
                    return None
            except (OSError, HTTPException) as error:
                final = isinstance(error, HTTPError) and error.code < 500 and error.code != TOO_MANY
                if pause is None or final or self._ending.wait(pause):
                    return f"{error or type(error).__name__}"
        return None

    def _note(self, subject: str, failure: str) -> None:
        with contextlib.suppress(DBAPIError), writing(self._engine) as connection:
            tokens.record(connection, "webhook-failed", subject, detail=failure)


def body(row: ChangeRow, doubts: Sequence[str], server: str) -> dict[str, Any]:
    """What is posted: `text` is what a chat shows, `doubts` those of the result it begins at."""
    url = f"{server.rstrip('/')}/cases/{row.case_id}"
    size = f"{percent_change(row.ratio)} [{percent_change(row.low)}, {percent_change(row.high)}]"
    facts = "; ".join(f"{name} {before} → {after}" for name, before, after in row.facts[:MOST_FACTS])
    text = f"{row.label} on {row.machine}: {size} since {row.run}" + (f" ({facts})" if facts else "")
    text += f"; in doubt: {', '.join(doubts)}" if doubts else ""
    change = {**asdict(row), "regression": row.regression}
    return {"text": f"{text}. {url}", "url": url, "change": change, "doubts": list(doubts)}
