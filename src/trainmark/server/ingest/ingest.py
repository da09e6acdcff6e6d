"""Taking one packed file in, from the upload to the acknowledgement."""

from __future__ import annotations

import contextlib
import threading
import time

from sqlalchemy import Engine, func, select
from sqlalchemy.exc import DataError, DBAPIError

from trainmark.server.access import audit
from trainmark.server.access.tokens import Identity
from trainmark.server.database.engine import reading, writing
from trainmark.server.database.models import Run
from trainmark.server.faults import CLOCK
from trainmark.server.ingest.checked import IngestError
from trainmark.server.ingest.files import Upload, publishing_mark
from trainmark.server.ingest.isolated import check_isolated
from trainmark.server.ingest.store import Received, Stored, known, store
from trainmark.server.ingest.unreferenced import forget
from trainmark.server.settings import Settings
from trainmark.store.verify import AHEAD_SECONDS
from trainmark.store.verify import CLOCK as IMPOSSIBLE_BY_CLOCK


class Ingest:
    """Stores uploads; at most `checks_at_once` of them are checked at the same time."""

    def __init__(self, settings: Settings, engine: Engine) -> None:
        self._settings, self._engine = settings, engine
        self._turns = threading.BoundedSemaphore(settings.checks_at_once)

    def take(self, upload: Upload, identity: Identity, address: str) -> Stored:
        """Check, write durably and store; once this returns, the run survives a crash. IngestError else."""
        received = Received(upload.sha256, upload.bytes, identity, address)
        try:
            with reading(self._engine) as connection:
                before = known(connection, received)
            if before is not None:
                return before
            upload.flush()
            with self._turns:
                checked = check_isolated(upload.path, self._settings)
            upload.sync()
            try:
                with writing(self._engine) as connection:
                    stored = store(connection, checked, received)
                    if stored.new:
                        # Before the commit: a row must never name a file that is not there. Within the
                        # transaction: what is refused leaves no file, and nobody removes files meanwhile.
                        upload.publish()
            except (DBAPIError, OSError):
                # No room for the row: then the file must not stay either. Else the next start removes it.
                # Without a mark it never got its name, and a locked database would be waited for once more.
                if publishing_mark(self._settings, received.sha256).exists():
                    with contextlib.suppress(DBAPIError, OSError):
                        forget(self._engine, self._settings, received.sha256)
                raise
            upload.settle()
            return stored
        except DataError as error:
            refused = IngestError("the run has a value that the database cannot hold.")
            self._note(received, refused)
            raise refused from error
        except IngestError as error:
            if IMPOSSIBLE_BY_CLOCK in str(error) and self._clock_is_behind():
                raise IngestError(CLOCK.sentence, CLOCK.status) from error
            self._note(received, error)
            raise

    def _clock_is_behind(self) -> bool:
        """Whether a stored run begins at a time that is yet to come: then such a start proves nothing.

        By the clocks that measured, as this one may have been ahead when a file came in.
        """
        with reading(self._engine) as connection:
            newest = connection.execute(select(func.max(Run.created))).scalar_one()
        return newest is not None and newest > time.time() + AHEAD_SECONDS

    def _note(self, received: Received, error: IngestError) -> None:
        if error.status >= 500:
            return
        identity = received.identity
        # A full disk must not change what is answered.
        with contextlib.suppress(DBAPIError), writing(self._engine) as connection:
            audit.record(
                connection, "push-refused", received.sha256, identity.name, received.address, str(error)
            )
