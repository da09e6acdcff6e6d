"""Names that give a secret away, and values beside them that are none."""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache


class Doubt(IntEnum):
    """How much a name says of its value: `GUESSED` is a secret only where the value looks like one."""

    NONE = 0
    GUESSED = 1
    POSSIBLE = 2
    SURE = 3


# Words of a name, after `apiKey`, `api-key` and `api.key` have become `API_KEY`.
SURE = re.compile(
    r"(?:^|_)(?:API_?KEYS?|ACCESS_KEY|(?:SECRET|PRIVATE|SIGNING|ENCRYPTION|MASTER|ACCOUNT|SHARED_ACCESS)_KEY|"
    r"SECRETS?|TOKEN|PASSWORDS?|PASSWD|PASSPHRASE|CREDENTIALS?|CREDS|AUTH|AUTHORIZATION|BEARER|COOKIES?|DSN|"
    r"WEBHOOKS?|CONNECTION_STRINGS?|"
    r"(?:DATABASE|DB|REDIS|MONGO|MONGODB|POSTGRES|POSTGRESQL|MYSQL|AMQP|RABBITMQ|BROKER)_UR[IL])\d*(?:_|$)"
    r"|PASSWORD|PASSWD|PASSPHRASE|APIKEY|(?:ACCESS|SECRET|PRIVATE|ACCOUNT)KEY|(?:AUTH|ACCESS|REFRESH)TOKEN"
    r"|SECRET(?!A|I)|_PAT(?:_|$)|_PWD$|_PASS$|STOREPASS|KEYPASS"
)
NAMED = re.compile(r"_KEY\d*$|(?:^|_)(?:PAT|TOKENS)(?:_|$)|^KEY$")
GUESSED = re.compile(
    r"(?:^|_)(?:KEYS?|PASS|PWD|PW|PAT|TOKENS|SIG|SIGNATURE|SESSION(?:_?ID)?|SID|JWT|CREDENTIAL)$"
)
# Tokens of a language model and of a tokenizer are no secrets, nor are the keys of a table.
COUNTED = re.compile(
    r"(?:^|_)TOKENS?_(?:COUNTS?|COUNTER|PER|TYPES?|LENGTH|LEN|LIMIT|SIZE|RATE|EMBEDDINGS?|DIM|BUDGET|PROCESSED|SEEN|"
    r"NUM|IDS?|IDX|INDEX|MASK|SHAPE|LOSS|ACC|ACCURACY|FILE|PATH|DIR|DATASET|CLASS|LEVEL|WISE|DROPOUT|PROB|POS|"
    r"POSITIONS?|DISPATCHER|ROUTING|THROUGHPUT|S|SEC|BATCH|SHIFT|MIXING|PRUNING|MERGING)(?:_|$)"
    r"|(?:^|_)(?:NUM|N|MAX|MIN|AVG|MEAN|TOTAL|TRAIN|TRAINING|EVAL|VAL|TEST|INPUT|OUTPUT|PROMPT|NEW|SPECIAL|ADDED|CACHED|"
    r"GENERATED|CONSUMED|GLOBAL|LOCAL|TARGET|SOURCE|PADDING|COMPLETION|REASONING|WARMUP|TRAINED|SEEN|BILLION)_TOKENS"
    r"(?:_|$)"
    r"|(?:^|_)(?:PAD|EOS|BOS|UNK|MASK|SEP|CLS|NEXT|SPECIAL|IMAGE|AUDIO|VIDEO|STOP|PREFIX|LAST|FIRST|PER)_TOKENS?(?:_|$)"
    r"|(?:^|_)(?:CASE|SORT|PRIMARY|FOREIGN|CACHE|PARTITION|GROUP|DICT|STATE|INDEX|METRIC|PUBLIC|MISSING|UNEXPECTED|"
    r"IMAGE|LABEL|TEXT|INPUT|OUTPUT|FEATURE|COLUMN|ROW|DATA|DATASET|PARAM|CONFIG|OBJECT|LOG|MONITOR|TARGET|SEARCH|"
    r"REWARD|KEY_VALUE|QUERY|PRNG|RNG|RANDOM|SEED|DROPOUT|HOT|ANY)_KEY$"
    r"|_COUNT$|^AUTH_(?:TYPE|METHOD|MODE)$"
)
# Under these names even a number is a secret.
NUMERIC = re.compile(
    r"PASSWORD|PASSWD|PASSPHRASE|_PWD$|_PASS$|SECRET(?!S|A|I)|API_?KEY|(?:ACCESS|PRIVATE)_?KEY"
)
CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
LONGEST_NAME = 200  # of a longer one, its end

NO_SECRET = re.compile(
    r"none|null|nil|nan|true|false|yes|no|on|off|str|string|int|bool|bytes|undefined|unset|required|~|\*+"
    r"|\$\{?\w+\}?|\$\(.*|\{\{.*|%\w+%|<[^<>]*>|Optional\[.*|\.{3}|…",
    re.IGNORECASE,
)
NUMBER = re.compile(
    r"[-+~≈<>]?(?!(?:\D?\d){16})\.?\d[\d.,_:/*×^+-]*(?:e[-+]?\d+)?"
    r"(?:%|(?:[kmgtb]|[kmgt]?i?b|[mun]?s|x|it|tok(?:en)?s?)(?:/[a-z]{1,6})?|/[a-z]{1,6})?",
    re.IGNORECASE,
)
# `resnet50`, `mobilenet_v2`, `fp16`: a word with a number behind it.
NUMBERED_WORD = re.compile(r"[A-Za-z]+[-_]?v?\d{1,4}[a-z]?", re.IGNORECASE)
RUN = re.compile(r"[A-Za-z0-9]{8,}")


@lru_cache(maxsize=4096)
def doubt_of(name: str) -> Doubt:
    """How far a variable, key or option of this name holds a secret."""
    words = _words(name)
    if COUNTED.search(words):
        return Doubt.NONE
    if SURE.search(words):
        return Doubt.SURE
    if words.endswith("_KEY"):
        return Doubt.SURE if name.isupper() else Doubt.POSSIBLE
    return Doubt.GUESSED if GUESSED.search(words) else Doubt.NONE


def is_secret(name: str) -> bool:
    """Whether a variable, key or option of this name holds a secret."""
    words = _words(name)
    return bool(SURE.search(words) or NAMED.search(words)) and not COUNTED.search(words)


def is_numeric_secret(name: str) -> bool:
    return bool(NUMERIC.search(_words(name)))


def is_plain(name: str, value: str) -> bool:
    """Whether a value is no secret under any name like this: nothing, a switch, a reference, a count."""
    if not value or NO_SECRET.fullmatch(value):
        return True
    return all(map(NUMBER.fullmatch, re.split(r"[\s,]+", value[:200]))) and not is_numeric_secret(name)


def looks_random(value: str) -> bool:
    """Whether one word has letters and digits as no name of a model, file or case has them."""
    if len(value) < 8 or value[0] in "/~." or NUMBER.fullmatch(value) or NUMBERED_WORD.fullmatch(value):
        return False
    if any(sign in "!@#$%^&*" for sign in value):
        return any(sign.isalnum() for sign in value)
    return any(
        not run.isalpha() and not run.isdigit() and not NUMBERED_WORD.fullmatch(run)
        for run in RUN.findall(value)
    )


def _words(name: str) -> str:
    """`apiKey`, `api-key` and `env.api_key` as `API_KEY` and `ENV_API_KEY`."""
    return re.sub(r"\W+", "_", CAMEL_CASE.sub("_", name[-LONGEST_NAME:])).strip("_").upper()
