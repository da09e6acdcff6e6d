"""What gives a secret away: names of variables and keys, and the shapes of well-known tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache


class Likelihood(IntEnum):
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
def likelihood_of(name: str) -> Likelihood:
    """How far a variable, key or option of this name holds a secret."""
    words = _words(name)
    if COUNTED.search(words):
        return Likelihood.NONE
    if SURE.search(words):
        return Likelihood.SURE
    if words.endswith("_KEY"):
        return Likelihood.SURE if name.isupper() else Likelihood.POSSIBLE
    return Likelihood.GUESSED if GUESSED.search(words) else Likelihood.NONE


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


@dataclass(frozen=True)
class SecretShape:
    name: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
# No letter or digit before it; a shape with a part after one of any length begins where a word does,
# or a line of a million letters would be searched from each of them.
LOOSE, STRICT = r"(?<![A-Za-z0-9])", r"(?<![\w-])"
ROWS = (
    ("GitHub", "gho_ ghp_ ghr_ ghs_ ghu_", r"gh[oprsu]_[A-Za-z0-9]{20,}"),
    ("GitHub", "github_pat_", r"github_pat_\w{20,}"),
    ("GitLab", "glpat- gldt- glft- glrt- glcbt- glptt- glimt- gloas- glagent- glsoat- glffct-",
     r"gl(?:pat|dt|ft|rt|cbt|ptt|imt|oas|agent|soat|ffct)-[\w-]{20,}"),
    ("GitLab", "GR1348941", r"GR1348941[\w-]{20,}"),
    ("Hugging Face", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{20,}"),
    ("npm", "npm_", r"npm_[A-Za-z0-9]{30,}"),
    ("PyPI", "pypi-", r"pypi-[\w-]{50,}"),
    ("Google key", "AIza", r"AIza[\w-]{30,}"),
    ("Google OAuth", "ya29.", r"ya29\.[\w.-]{20,}"),
    ("Google OAuth", "GOCSPX-", r"GOCSPX-[\w-]{20,}"),
    ("Google OAuth", "1//0", r"1//0[\w-]{30,}"),
    ("OpenAI and alike", "sk-", r"(?<![\w-])sk-(?=[\w-]*\d)[\w-]{20,}"),
    ("Slack", "xox", r"xox[abeoprs](?:\.xox[abp])?-[\w-]{10,}"),
    ("Slack", "xapp-", r"xapp-\d-[\w-]{10,}"),
    ("Slack webhook", "hooks.slack.com/", r"(?<=hooks\.slack\.com/)(?:services|workflows)/[\w/+-]{10,}"),
    ("Discord webhook", "/api/webhooks/", r"(?<=/api/webhooks/)\d{5,}/[\w-]{20,}"),
    ("Teams webhook", ".webhook.office.com/", r"(?<=\.webhook\.office\.com/)webhookb?2?/[\w@/-]{20,}"),
    ("AWS", "AKIA ASIA ABIA ACCA", r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?![A-Za-z0-9])"),
    ("AWS Bedrock", "ABSK", r"ABSK[A-Za-z0-9+/]{40,}={0,2}"),
    ("Azure", "Q~", r"(?<![\w.~-])[\w.~]{3}\dQ~[\w.~-]{31,34}(?![\w.~-])"),
    ("Alibaba", "LTAI", r"LTAI[A-Za-z0-9]{12,}"),
    ("Stripe", "sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_ rk_prod_",
     r"[rs]k_(?:live|test|prod)_[A-Za-z0-9]{10,}"),
    ("Stripe", "whsec_", r"whsec_[A-Za-z0-9+/]{20,}={0,2}"),
    ("DigitalOcean", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[a-f0-9]{40,}"),
    ("Databricks", "dapi", r"dapi[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])"),
    ("Vault", "hvs. hvb. hvr.", r"hv[brs]\.[\w-]{20,}"),
    ("Terraform", ".atlasv1.", r"(?<![\w-])[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,}"),
    ("SendGrid", "SG.", r"(?<![\w-])SG\.[\w-]{16,}\.[\w-]{16,}"),
    ("Telegram", ":A", r"\d{5,16}:A[\w-]{34}(?![\w-])"),
    ("Docker", "dckr_pat_ dckr_oat_", r"dckr_[op]at_[\w-]{20,}"),
    ("Bitbucket", "ATBB", r"ATBB[A-Za-z0-9_=-]{20,}"),
    ("Atlassian", "ATATT3 ATCTT3", r"AT[AC]TT3[\w=-]{30,}"),
    ("Twilio", "SK", r"SK[a-f0-9]{32}(?![A-Za-z0-9])"),
    ("Weights & Biases", "wandb_v", r"wandb_v\d_[\w-]{20,}"),
    ("NVIDIA", "nvapi-", r"nvapi-[\w-]{30,}"),
    ("Groq", "gsk_", r"gsk_[A-Za-z0-9]{20,}"),
    ("Replicate", "r8_", r"r8_[A-Za-z0-9]{30,}"),
    ("Perplexity", "pplx-", r"pplx-[A-Za-z0-9]{30,}"),
    ("Together", "tgp_v1_", r"tgp_v1_[\w-]{20,}"),
    ("RunPod", "rpa_", r"rpa_[A-Z0-9]{30,}"),
    ("Kaggle", "KGAT_", r"KGAT_[a-f0-9]{20,}"),
    ("Neptune", "eyJhcGlfYWRkcmVzcyI6", r"eyJhcGlfYWRkcmVzcyI6[A-Za-z0-9+/=_-]{20,}"),
    ("Grafana", "glsa_ glc_", r"gl(?:sa|c)_[A-Za-z0-9+/_=]{30,}"),
    ("New Relic", "NRAK- NRII- NRAL-", r"NR(?:AK|II|AL)-[\w-]{20,}"),
    ("Dynatrace", "dt0c01.", r"dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{40,}"),
    ("Sentry", "sntrys_ sntryu_", r"sntry[su]_[\w+/=-]{40,}"),
    ("Postman", "PMAK-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{30,}"),
    ("Shopify", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{30,}"),
    ("Square", "sq0csp- sq0atp-", r"sq0(?:csp|atp)-[\w-]{20,}"),
    ("Linear", "lin_api_", r"lin_api_[A-Za-z0-9]{30,}"),
    ("Notion", "ntn_", r"ntn_[A-Za-z0-9]{40,}"),
    ("Figma", "figd_", r"figd_[\w-]{30,}"),
    ("Doppler", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{30,}"),
    ("Pulumi", "pul-", r"pul-[a-f0-9]{40}(?![A-Za-z0-9])"),
    ("PlanetScale", "pscale_", r"pscale_(?:tkn|pw|oauth)_[\w.=-]{30,}"),
    ("RubyGems", "rubygems_", r"rubygems_[a-f0-9]{40,}"),
    ("Tailscale", "tskey-", r"tskey-[a-z]{2,12}-[\w-]{20,}"),
    ("Fly.io", "fo1_ fm2_ FlyV1", r"fo1_[\w-]{40,}|(?<![A-Za-z0-9])fm2_[\w+/=-]{40,}"),
    ("Supabase", "sbp_", r"sbp_[a-z0-9]{40,}"),
    ("age", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    ("1Password", "ops_eyJ", r"ops_eyJ[A-Za-z0-9+/]{100,}={0,3}"),
    ("JSON web token", "eyJ", r"(?<![\w-])eyJ[\w-]{5,}\.eyJ[\w-]{5,}\.[\w-]*"),
    ("bearer", "earer EARER", r"(?:(?<=\b[Bb]earer )|(?<=\bBEARER ))[\w.~+/=-]{8,}"),
)  # fmt: skip
SHAPES = tuple(
    SecretShape(
        name,
        tuple(hints.split()),
        re.compile(pattern if pattern.startswith("(?") else LOOSE + pattern, re.ASCII),
    )
    for name, hints, pattern in ROWS
)


def shapes_in(text: str) -> Iterator[str]:
    """What of a text has the shape of a secret."""
    for key in PRIVATE_KEY.finditer(text):
        yield key.group()
    for shape in SHAPES:
        if any(hint in text for hint in shape.hints):
            yield from (match.group() for match in shape.pattern.finditer(text))
