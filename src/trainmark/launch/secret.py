"""Secrets in an environment: known by their names, and kept out of whatever is written down."""

from __future__ import annotations

import re
from collections.abc import Mapping

NAME = re.compile(
    r"(?:^|_)(?:API_?KEY|ACCESS_KEY|SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|PRIVATE_KEY|AUTH)(?:_|$)"
    r"|_KEY$|^KEY$",
    re.IGNORECASE,
)
HIDDEN = "*****"


def is_secret(name: str) -> bool:
    return bool(NAME.search(name))


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: HIDDEN if is_secret(name) else value for name, value in environment.items()}


def secret_values(environment: Mapping[str, str]) -> list[str]:
    return sorted({value for name, value in environment.items() if is_secret(name) and value})
