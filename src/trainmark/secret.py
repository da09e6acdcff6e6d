"""Secrets in variables, facts and text: recognised by name or shape, and masked in what is written down."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "*****"
DEEPEST = 100  # levels of a value; what is nested deeper is masked whole

# Words of a name, after `apiKey`, `api-key` and `api.key` have become `API_KEY`.
NAME = re.compile(
    r"(?:^|_)(?:API_?KEYS?|ACCESS_KEY|SECRETS?|TOKENS?|PASSWORDS?|PASSWD|PASSPHRASE|CREDENTIALS?|CREDS|"
    r"PRIVATE_KEY|AUTH|AUTHORIZATION|BEARER|COOKIES?|PAT|DSN|WEBHOOK|CONNECTION_STRING|"
    r"(?:DATABASE|DB|REDIS|MONGO|MONGODB|POSTGRES|POSTGRESQL|MYSQL|AMQP|RABBITMQ|BROKER)_UR[IL])(?:_|$)"
    r"|_KEY$|^KEY$|_PWD$|_PASS$"
)
# Tokens of a language model and of a tokenizer are no secrets.
COUNTED = re.compile(
    r"(?:^|_)TOKENS?_(?:COUNT|PER|TYPE|LENGTH|LIMIT|SIZE|RATE|EMBEDDING|DIM|BUDGET|PROCESSED|SEEN)(?:_|$)"
    r"|(?:^|_)(?:NUM|MAX|MIN|TOTAL|TRAIN|TRAINING|INPUT|OUTPUT|PROMPT|NEW)_TOKENS(?:_|$)"
    r"|(?:^|_)(?:PAD|EOS|BOS|UNK|MASK|SEP|CLS)_TOKENS?(?:_|$)"
)
# Under these names even a number is a secret.
PASSWORD = re.compile(r"PASSWORD|PASSWD|PASSPHRASE|_PWD$|_PASS$")

SHAPES = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"\bgh[oprsu]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{20,}"),
    re.compile(r"\bhf_[A-Za-z0-9]{20,}|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[\w-]{50,}|\bAIza[\w-]{30,}"),
    re.compile(r"(?<![\w-])sk-(?=[\w-]*\d)[\w-]{20,}|\bxox[abeoprs]-[\w-]{10,}"),
    re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    re.compile(r"\beyJ[\w-]{5,}\.eyJ[\w-]{5,}\.[\w-]*"),  # a JSON web token
    re.compile(r"(?<=\bBearer )[\w.~+/=-]{8,}", re.IGNORECASE),
)
URL_PASSWORD = re.compile(r"(?<=://)([^\s/?#:@]*):([^\s/?#]+)@")
ASSIGNMENT = re.compile(r"(?<![\w/])(-{0,2}[A-Za-z_][\w.-]*)=(\"[^\"]*\"|'[^']*'|[^\s\"'&;,]+)")
OPTION = re.compile(r"(?<!\S)(--[A-Za-z][\w-]*)(\s+)(?!-)(\S+)")
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]+")
CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def is_secret(name: str) -> bool:
    """Whether a variable, key or option of this name holds a secret."""
    words = _words(name)
    return bool(NAME.search(words)) and not COUNTED.search(words)


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
        values |= {match.group() for shape in SHAPES for match in shape.finditer(value)}
    return sorted(values - {""})


def scrub_text(text: str) -> str:
    """Mask URL passwords, known token shapes, and the values of `NAME=…` and `--name …` with secret names."""
    for shape in SHAPES:
        text = shape.sub(HIDDEN, text)
    text = URL_PASSWORD.sub(rf"\1:{HIDDEN}@", text)
    text = ASSIGNMENT.sub(lambda match: f"{match[1]}={HIDDEN}" if _named(match[1]) else match[0], text)
    return OPTION.sub(lambda match: f"{match[1]}{match[2]}{HIDDEN}" if _named(match[1]) else match[0], text)


def scrub(value: Any, depth: int = 0) -> Any:
    """Return the value with its secrets masked: in mappings by key, in all text by shape.

    A number is masked only under the name of a password, so that `token_count` stays.
    """
    if isinstance(value, str):
        return scrub_text(value)
    if depth >= DEEPEST and isinstance(value, (Mapping, list, tuple)):
        return HIDDEN
    if isinstance(value, Mapping):
        record = {}
        secret_pair = "value" in value and any(_secret_name(value.get(key)) for key in ("name", "key"))
        for key, inner in value.items():
            hidden = _secret_name(key) or (secret_pair and key == "value")
            record[_clean_key(key)] = _masked(key, inner) if hidden else scrub(inner, depth + 1)
        return record
    if isinstance(value, (list, tuple)):
        if len(value) == 2 and _secret_name(value[0]) and VARIABLE.fullmatch(value[0]):
            items = [value[0], _masked(*value)]
        else:
            items = [scrub(inner, depth + 1) for inner in value]
        return tuple(items) if isinstance(value, tuple) else items
    return value


def _masked(name: Any, value: Any) -> Any:
    if value is None or value == "" or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return HIDDEN if PASSWORD.search(_words(str(name))) else value
    if isinstance(value, (list, tuple)) and all(isinstance(item, (int, float)) for item in value):
        return value  # counts of tokens, say
    return HIDDEN


def _words(name: str) -> str:
    """`apiKey`, `api-key` and `env.api_key` as `API_KEY` and `ENV_API_KEY`."""
    return re.sub(r"\W+", "_", CAMEL_CASE.sub("_", name)).strip("_").upper()


def _named(option: str) -> bool:
    return is_secret(option.lstrip("-"))


def _secret_name(key: Any) -> bool:
    return isinstance(key, str) and is_secret(key)


def _clean_key(key: Any) -> Any:
    return scrub_text(key) if isinstance(key, str) else key
