"""Made-up secrets in the ways in which programs, shells and files write them down; a seed draws them."""

from __future__ import annotations

import json
import random
import shlex
import string
from collections.abc import Iterator
from dataclasses import dataclass

ALNUM = string.ascii_letters + string.digits
HEX = string.digits + "abcdef"
URLSAFE = ALNUM + "_-"
NAMES = (
    *(
        "password",
        "passwd",
        "PASSWORD",
        "DB_PASSWORD",
        "db_pass",
        "api_key",
        "apiKey",
        "API-KEY",
        "MY_SECRET",
    ),
    *("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "token", "auth_token", "accessToken"),
    *("client-secret", "private_key", "WANDB_API_KEY", "PGPASSWORD", "passphrase", "env.GITHUB_TOKEN"),
    *("bearer", "webhook", "connection_string", "secretKey", "userPassword", "aws.secretKey"),
)
SIGNS = ("=", " = ", ": ", " : ", ":=", " => ", "\t=\t", "：", ": \t", "  =  ")
QUOTINGS = ("{}", '"{}"', "'{}'", 'r"{}"', "SecretStr('{}')", '\\"{}\\"', "`{}`")
AROUND = (
    "{}",
    "  {}",
    "export {}",
    "# {}",
    "2026-11-19 04:38 INFO worker {}",
    "rank 0: {}",
    "- {}",
    "\x1b[32m{}\x1b[0m",
)


@dataclass(frozen=True)
class Variant:
    """A text, and what of it must not be in any file that leaves the machine."""

    text: str
    secret: str

    @property
    def one_line(self) -> bool:
        return "\n" not in self.text and "\x1b" not in self.text


def variants(seed: int = 20261119) -> list[Variant]:
    draw = random.Random(seed)
    return [*_named(draw), *_objects(draw), *_lines(draw), *_commands(draw), *_urls(draw), *_shapes(draw)]


def homes() -> Iterator[Variant]:
    """Paths of homes; the secret is the user's name."""
    folders = (
        "/home",
        "/Users",
        "/data/home",
        "/nfs/home",
        "/var/home",
        "/export/home",
        "/gpfs/scratch/home",
        "/users",
    )
    for number, folder in enumerate(folders):
        name = f"adalovelace{number}"
        for path in (f"{folder}/{name}", f"{folder}/{name}/data/train.bin"):
            for text in (
                path,
                f"at {path}:3",
                f'"{path}"',
                f"-I{path}",
                f"--data={path}",
                f"A=/usr/lib:{path}",
            ):
                yield Variant(text, name)
        plain = f"{folder}/{name}/x"
        yield Variant(f"dir={plain.replace('/', '%2F')}&b=1", name)
        yield Variant(plain.replace("/", "\\/"), name)
        yield Variant(f"file://{plain}", name)
    for text in ("C:\\Users\\{}\\data", "d:/Users/{}/data", "C:\\\\Users\\\\{}\\\\data", "c:\\users\\{}"):
        yield Variant(text.format("gracehopper"), "gracehopper")


def value(draw: random.Random) -> str:
    """Letters and digits of some length, or what people type."""
    kind = draw.randrange(5)
    if kind == 0:
        return "correct-horse-" + _of(draw, string.ascii_lowercase, 8)
    if kind == 1:
        return _of(draw, HEX, 40)
    if kind == 2:
        return "aB3$x" + _of(draw, ALNUM, 8) + "/+="
    return _of(draw, ALNUM, draw.choice((10, 16, 24, 40)))


def _of(draw: random.Random, letters: str, count: int) -> str:
    return "".join(draw.choice(letters) for _ in range(count))


def _named(draw: random.Random) -> Iterator[Variant]:
    """Every name with every sign, in a drawn quoting and surrounding."""
    for name in NAMES:
        for sign in SIGNS:
            for quoting in draw.sample(QUOTINGS, 3):
                secret = value(draw)
                yield Variant(draw.choice(AROUND).format(f"{name}{sign}{quoting.format(secret)}"), secret)
    for name in ("password", "secret", "passphrase"):
        for sign in (": ", " = "):
            secret = "_".join(_of(draw, string.ascii_lowercase, 6) for _ in range(2))
            yield Variant(f"{name}{sign}correct horse {secret}", secret)
    for name in NAMES[:9]:
        secret = value(draw)
        yield Variant(f"\x1b[32m{name}\x1b[0m: {secret}", secret)
        secret = value(draw)
        yield Variant(f'{name}="a\\" {secret}"', secret)
        secret = value(draw)
        yield Variant(f"<{name}>{secret}</{name}>", secret)
        secret = value(draw)
        yield Variant(f"{name}={shlex.quote(_of(draw, ALNUM, 5) + chr(39) + secret)} python train.py", secret)


def _objects(draw: random.Random) -> Iterator[Variant]:
    """Names and values as JSON, Python and YAML write them."""
    for name in NAMES:
        for text in (
            '{{"{name}":"{secret}"}}', '{{"a": 1, "{name}": "{secret}", "b": 2}}',
            "{{'{name}': '{secret}', 'lr': 0.1}}",
            "('{name}', '{secret}')", '["{name}", "{secret}"]',
            "Namespace(lr=0.1, {word}='{secret}', seed=1)",
            'os.environ["{name}"] = "{secret}"', 'config["{name}"]="{secret}"',
            'setenv("{name}", "{secret}")',
            '"{{\\"{name}\\": \\"{secret}\\"}}"', '{{"name": "{name}", "value": "{secret}"}}',
            "- name: {name}\n  value: {secret}", "- name: {name}\n  value: \"{secret}\"",
            "{name}:\n  {secret}",
            "{name}: |\n  {secret}", "{name}: >-\n    {secret}", "{name}:\n- {secret}",
            "{name}:\n  - {secret}",
            '"{name}": [\n  "{secret}"\n]',
        ):  # fmt: skip
            secret = _of(draw, ALNUM, 20)
            yield Variant(text.format(name=name, word=name.replace("-", "_"), secret=secret), secret)


def _lines(draw: random.Random) -> Iterator[Variant]:
    """Headers, and files of settings."""
    for text in (
        "Authorization: Basic {}", "Authorization: token {}", "authorization: Bearer {}",
        "Cookie: a=b; session={}",
        "-H 'Authorization: Basic {}'", '-H "Authorization: ApiKey {}" https://x.org',
        "{{'Authorization': 'Bearer {}'}}",
        'curl -H "X-Api-Key: {}" https://x.org', "Set-Cookie: id={}; Path=/", "Proxy-Authorization: Basic {}",
        "machine api.wandb.ai login user password {}", "machine x\n  login user\n  password {}",
        "  password {}",
        "//registry.npmjs.org/:_authToken={}",
        "DefaultEndpoints=https;AccountName=a;AccountKey={};EndpointSuffix=b",
        "Server=db;Uid=me;Pwd={};", "[default]\naws_secret_access_key = {}", "private_key: '{}'",
        "API key: {}",
        "Loaded api key = {}", "key = {}", "sig: {}", "pwd={}", "session_id: {}", "KEY={}", "jwt: {}",
        "pass: {}",
    ):  # fmt: skip
        for _ in range(4):
            secret = _of(draw, ALNUM, 24) + "7xZ"
            yield Variant(text.format(secret), secret)


def _commands(draw: random.Random) -> Iterator[Variant]:
    for words in (
        ("curl", "-u", "ada:{}", "https://x.org"), ("curl", "--user", "ada:{}"),
        ("mysql", "-h", "db", "-p{}", "runs"),
        ("mysqldump", "-p{}"), ("sshpass", "-p", "{}", "ssh", "host"), ("sshpass", "-p{}", "ssh", "host"),
        ("wandb", "login", "{}"), ("docker", "login", "-u", "ada", "-p", "{}"),
        ("redis-cli", "-a", "{}", "ping"),
        ("python", "t.py", "--token", "{}"), ("python", "t.py", "--password", "{}", "--lr", "1"),
        ("x", "--api-key={}"),
        ("aws", "configure", "set", "aws_secret_access_key", "{}"),
        ("huggingface-cli", "login", "--token", "{}"),
        ("env", "HF_TOKEN={}", "python"), ("kubectl", "create", "secret", "--from-literal=password={}"),
        ("openssl", "enc", "-passin", "pass:{}"), ("x", "-password", "{}"), ("zip", "-P", "{}", "a.zip"),
    ):  # fmt: skip
        for _ in range(2):
            secret = _of(draw, ALNUM, 18) + "4q"
            filled = [word.format(secret) for word in words]
            yield Variant(" ".join(filled), secret)
            yield Variant(json.dumps(filled), secret)
            yield Variant(repr(filled), secret)
            yield Variant(json.dumps({"argv": filled}, indent=1), secret)
    for option in ("--token", "--password", "--api-key", "--client-secret"):
        secret = _of(draw, ALNUM, 20)
        yield Variant(f"python train.py {option} \\\n  {secret} \\\n  --lr 0.1", secret)


def _urls(draw: random.Random) -> Iterator[Variant]:
    for text in (
        "postgres://me:{}@db:5432/runs", "redis://:a/{}@h", "https://{}@host/repo.git",
        "git+https://{}@github.com/a/b",
        "https://me:pa/{}@host/x", "https://x.org/a?token={}&b=1", "https://x.org/a?b=1&X-Amz-Signature={}",
        "https://x.org/?X-Amz-Credential={}", "https://x.blob.core.windows.net/c?sv=2022&sig={}%3D",
        "https://x.org/?api_key={}",
        "https://x.org/?X-Goog-Signature={}", "https://x.org/?AWSAccessKeyId=1&Signature={}",
        "mongodb+srv://me:{}@c.net/?w=1",
        "https://x.org/?next=%2Fa&access_token%3D{}", "https://hooks.slack.com/services/T0AAA/B0AAA/{}",
        "https://discord.com/api/webhooks/123456789/{}", "http_proxy=http://me:{}@proxy:3128",
    ):  # fmt: skip
        for around in ("{}", "fetch {} now", '"{}"', "url: {}", "pushing to <{}>"):
            secret = _of(draw, ALNUM, 26) + "9kV"
            yield Variant(around.format(text.format(secret)), secret)


def _shapes(draw: random.Random) -> Iterator[Variant]:
    """A token of each service, put together here so that no scanner takes this file for a leak."""
    rows = (
        ("ghp", "_", ALNUM, 36), ("github", "_pat_", ALNUM, 60), ("glpat", "-", URLSAFE, 20),
        ("gldt", "-", URLSAFE, 20),
        ("hf", "_", string.ascii_letters, 34), ("npm", "_", ALNUM, 36), ("pypi", "-", URLSAFE, 90),
        ("AIza", "", URLSAFE, 35),
        ("ya29", ".", URLSAFE, 60), ("GOCSPX", "-", URLSAFE, 28), ("sk", "-proj-7", ALNUM, 40),
        ("sk", "-ant-api03-", URLSAFE, 90),
        ("xoxb", "-", string.digits, 30), ("xapp", "-1-", ALNUM, 30),
        ("AKIA", "", string.ascii_uppercase, 16),
        ("ASIA", "", string.ascii_uppercase, 16), ("sk", "_live_", ALNUM, 24), ("rk", "_test_", ALNUM, 24),
        ("whsec", "_", ALNUM, 32), ("dop", "_v1_", HEX, 64), ("dapi", "", HEX, 32), ("hvs", ".", URLSAFE, 90),
        ("SG", "." + "a" * 22 + ".", ALNUM, 43), ("dckr", "_pat_", ALNUM, 27), ("ATBB", "", ALNUM, 32),
        ("ATATT3", "xFfGF0", ALNUM, 100), ("123456789", ":AA", ALNUM, 33), ("SK", "", HEX, 32),
        ("nvapi", "-", URLSAFE, 64),
        ("gsk", "_", ALNUM, 52), ("r8", "_", ALNUM, 37), ("glsa", "_", ALNUM, 41), ("shpat", "_", HEX, 32),
        ("figd", "_", URLSAFE, 40), ("pul", "-", HEX, 40), ("sbp", "_", HEX, 40), ("LTAI", "", ALNUM, 20),
        ("tskey", "-auth-", ALNUM, 30), ("eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0In0.", URLSAFE, 43),
    )  # fmt: skip
    for prefix, sign, letters, length in rows:
        for around in ("{}", "using {} now", '"{}"', "x={}", "({})", "[{}]", "logged in as {}.", "a,{},b"):
            token = (
                prefix
                + sign
                + _of(draw, letters, length - 1)
                + draw.choice(ALNUM if letters is URLSAFE else letters)
            )
            yield Variant(around.format(token), token)
    for kind in ("RSA ", "EC ", "OPENSSH ", "", "ENCRYPTED ", "PGP "):
        block = " BLOCK" if kind == "PGP " else ""
        body = "\n".join(_of(draw, ALNUM, 64) for _ in range(3))
        begin, end = (f"-----{word} {kind}" + f"PRIVATE KEY{block}-----" for word in ("BEGIN", "END"))
        yield Variant(f"{begin}\n{body}\n{end}", body.split("\n")[1])
