"""What the first visitor would otherwise wait for: compiled templates, the ledger, the static files."""

from __future__ import annotations

import gc
from importlib.resources import files

from trainmark.report.format.words import LANGUAGES
from trainmark.server.pages.frame.assets import by_hashed_name
from trainmark.server.pages.frame.templating import environment
from trainmark.server.pages.published import entries_by_workload


def warm_up() -> None:
    by_hashed_name()
    for lang in LANGUAGES:
        env = environment(lang)
        for file in (files("trainmark.server.pages") / "templates").iterdir():
            env.get_template(file.name)
    entries_by_workload()
    # What was made so far stays: the collector need not walk through the ledger again during requests.
    gc.collect()
    gc.freeze()
