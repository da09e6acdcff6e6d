"""Secrets in variables, facts and text: recognised by name or shape, and masked in what is written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainmark.base.secret_patterns import (
    Likelihood,
    is_numeric_secret,
    is_secret,
    likelihood_of,
    looks_random,
    shapes_in,
)
from trainmark.base.secret_text import HIDDEN, URL_PASSWORD, mask_text, masked_words

__all__ = ["HIDDEN", "is_secret", "scrub", "scrub_text", "secret_values", "without_secrets"]

DEEPEST = 100  # levels of a value; what is nested deeper is masked whole


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with secrets masked, by name and by value."""
    return {
        name: HIDDEN if is_secret(name) else scrub_text(value) if isinstance(value, str) else value
        for name, value in environment.items()
    }


def secret_values(environment: Mapping[str, str]) -> list[str]:
    """Return what must not appear in a log: values of secret names, passwords in URLs, known shapes."""
    values = set()
    for name, value in environment.items():
        if is_secret(name):
            values.add(value)
        values |= {match.group(2) for match in URL_PASSWORD.finditer(value)}
        values |= set(shapes_in(value))
    return sorted(values - {""})


def scrub_text(text: str) -> str:
    """Mask the secrets of a text, those that are in doubt as well."""
    return mask_text(text)[0]


def scrub(value: Any, least: Likelihood = Likelihood.GUESSED, depth: int = 0) -> Any:
    """Return the value with its secrets masked: by key, by neighbour in a command, in text by shape.

    A number is masked only under the name of a password, so that `token_count` stays. With `least`, what is
    less sure than that stays.
    """
    if isinstance(value, str):
        masked, found = mask_text(value)
        return masked if any(doubt >= least for doubt in found.values()) else value
    if depth >= DEEPEST and isinstance(value, (Mapping, list, tuple)):
        return HIDDEN
    if isinstance(value, Mapping):
        record = {}
        secret_pair = "value" in value and any(_secret_name(value.get(key)) for key in ("name", "key"))
        for key, inner in value.items():
            hidden = _secret_name(key) or (secret_pair and key == "value") or _guessed(key, inner, least)
            record[_clean_key(key)] = _masked(key, inner) if hidden else scrub(inner, least, depth + 1)
        return record
    if isinstance(value, (list, tuple)):
        items = _items(value, least, depth)
        return tuple(items) if isinstance(value, tuple) else items
    return value


def _items(values: Sequence[Any], least: Likelihood, depth: int) -> list[Any]:
    if len(values) == 2 and _secret_name(values[0]) and likelihood_of(values[0]) is Likelihood.SURE:
        return [values[0], _masked(*values)]
    items = [scrub(inner, least, depth + 1) for inner in values]
    if len(items) > 1 and all(isinstance(item, str) and "\0" not in item for item in items):
        return masked_words(items)
    return items


def _masked(name: Any, value: Any) -> Any:
    if value is None or value == "" or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return HIDDEN if is_numeric_secret(str(name)) else value
    if isinstance(value, (list, tuple)) and all(isinstance(item, (int, float)) for item in value):
        return value  # counts of tokens, say
    return HIDDEN


def _secret_name(key: Any) -> bool:
    return isinstance(key, str) and is_secret(key)


def _guessed(key: Any, value: Any, least: Likelihood) -> bool:
    told = isinstance(key, str) and isinstance(value, str) and likelihood_of(key) is Likelihood.GUESSED
    return told and least < Likelihood.SURE and looks_random(value)


def _clean_key(key: Any) -> Any:
    return scrub_text(key) if isinstance(key, str) else key
