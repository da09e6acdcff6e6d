"""The names of facts in one language, for what is not yet a page of blocks."""

from __future__ import annotations

from typing import Any

from trainmark.pages import facts
from trainmark.view.catalogue import Lang, translated


def fact_name(key: Any, lang: Lang) -> str:
    return translated(facts.fact_name(str(key)), lang)
