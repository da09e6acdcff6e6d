"""Taking one packed file in, from the upload to the acknowledgement."""

from __future__ import annotations

import threading

from sqlalchemy import Engine
from sqlalchemy.exc import DataError

from trainmark.server.access import audit
from trainmark.server.access.tokens import Identity
from trainmark.server.database.engine import reading, writing
from trainmark.server.ingest.checked import IngestError
from trainmark.server.ingest.files import Upload
from trainmark.server.ingest.isolated import check_isolated
from trainmark.server.ingest.store import Received, Stored, known, store
from trainmark.server.settings import Settings


class Ingest:
    """Stores uploads; at most `checks_at_once` of them are checked at the same time."""

    def __init__(self, settings: Settings, engine: Engine) -> None:
        self._settings, self._engine = settings, engine
        self._turns = threading.BoundedSemaphore(settings.checks_at_once)

    def take(self, upload: Upload, identity: Identity, address: str) -> Stored:
        """Check, write durably and store; once this returns, the run survives a crash. IngestError else."""
        received = Received(upload.sha256, upload.bytes, identity, address)
        with reading(self._engine) as connection:
            before = known(connection, received.sha256)
        if before is not None:
            return before
        try:
            upload.flush()
            with self._turns:
                checked = check_isolated(upload.path, self._settings)
            upload.sync()
            with writing(self._engine) as connection:
                stored = store(connection, checked, received)
                if stored.new:
                    # Before the commit: a row must never name a file that is not there. Within the
                    # transaction: what is refused leaves no file, and nobody removes files meanwhile.
                    upload.publish()
            upload.settle()
            return stored
        except DataError as error:
            refused = IngestError("the run has a value that the database cannot hold.")
            self._note(received, refused)
            raise refused from error
        except IngestError as error:
            self._note(received, error)
            raise

    def _note(self, received: Received, error: IngestError) -> None:
        with writing(self._engine) as connection:
            audit.record(
                connection,
                "push-refused",
                received.sha256,
                received.identity.name,
                received.address,
                str(error),
            )
