"""The catalogues of other languages, in gettext's form; their keys are the English texts of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeVar

from trainmark.view.message import Message

Lang = Literal["en", "zh"]
LANGUAGES: tuple[Lang, ...] = ("en", "zh")
# A template leaves a space beside a value for Latin letters and digits; a Chinese one needs none.
NEEDLESS_SPACE = re.compile("(?<=[\u3000-\u303f\uff00-\uffef]) |(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff])")
# The template of joined parts: names alone.
BARE = re.compile(r"(\{\w+\})+")
Value = TypeVar("Value")


def translated(text: str, lang: Lang) -> str:
    """Return a message in a language, its values too; another text, or one without translation, as it is."""
    if lang == "en" or not isinstance(text, Message):
        return text
    values = {
        name: translated(value, lang) if isinstance(value, str) else value
        for name, value in text.values.items()
    }
    return NEEDLESS_SPACE.sub("", catalogue(lang).get(text.template, text.template).format(**values))


def localized(value: Value, lang: Lang) -> Value:
    """Return blocks, charts, or other dataclasses with every message in them translated."""
    return value if lang == "en" else _localized(value, lang)


def _localized(value: Any, lang: Lang) -> Any:
    if isinstance(value, str):
        return translated(value, lang)
    if isinstance(value, Mapping):
        return {_localized(name, lang): _localized(each, lang) for name, each in value.items()}
    if isinstance(value, Sequence):
        return type(value)(_localized(each, lang) for each in value)  # type: ignore[call-arg]
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        return replace(value, **{name: _localized(part, lang) for name, part in parts.items()})
    return value


def messages_of(value: Any) -> list[dict[str, Any]]:
    """Return the messages in a dataclass as JSON, to be stored beside their English texts."""
    if isinstance(value, Message):
        return [_record(value)]
    if isinstance(value, str):
        return []
    parts: Iterable[Any] = ()
    if isinstance(value, (Sequence, Mapping)):
        parts = value.values() if isinstance(value, Mapping) else value
    elif is_dataclass(value):
        parts = [getattr(value, field.name) for field in fields(value)]
    return [record for part in parts for record in messages_of(part)]


def _record(message: Message) -> dict[str, Any]:
    values = {
        name: _record(value) if isinstance(value, Message) else value
        for name, value in message.values.items()
    }
    return {"text": str(message), "template": message.template, "values": values}


def with_messages(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored document with the messages that it lists under `messages` in place of their texts."""
    stored = document.get("messages")
    known = {text: text for text in map(_message, stored) if text} if isinstance(stored, list) else {}
    return {name: _restored(part, known) for name, part in document.items() if name != "messages"}


def _restored(part: Any, known: Mapping[str, str]) -> Any:
    if isinstance(part, str):
        return known.get(part, part)
    if isinstance(part, Mapping):
        return {name: _restored(each, known) for name, each in part.items()}
    return [_restored(each, known) for each in part] if isinstance(part, list) else part


def _message(record: Any) -> str:
    """Return a stored message; nothing of one whose template is not ours, which could make any text of it."""
    if not isinstance(record, Mapping) or not isinstance(record.get("values"), Mapping):
        return ""
    template = record.get("template")
    if not isinstance(template, str) or (template not in catalogue("zh") and not BARE.fullmatch(template)):
        return ""
    values = {
        str(name): _message(value) if isinstance(value, Mapping) else value
        for name, value in record["values"].items()
    }
    try:
        return Message(template, **values)
    except (KeyError, IndexError, TypeError, ValueError):
        return ""


@cache
def catalogue(lang: Lang) -> Mapping[str, str]:
    """Return the texts of a language by their English."""
    text = (files("trainmark") / "locale" / f"{lang}.po").read_text(encoding="utf-8")
    return {english: other for english, other in entries(text) if english and other}


def entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield each msgid with its msgstr; either may go on over lines that are quoted strings alone."""
    entry = {"msgid": "", "msgstr": ""}
    keyword = "msgstr"
    for line in text.splitlines():
        before, quote, rest = line.partition('"')
        if line.startswith("#") or not quote:
            continue
        if before.strip() == "msgid":
            yield entry["msgid"], entry["msgstr"]
            entry = {"msgid": "", "msgstr": ""}
        keyword = before.strip() or keyword
        entry[keyword] += ast.literal_eval(quote + rest)
    yield entry["msgid"], entry["msgstr"]
