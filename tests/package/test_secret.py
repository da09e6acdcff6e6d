"""Secrets are masked by name and by shape; ordinary facts stay as they are."""

from __future__ import annotations

import json

import pytest

from trainmark.base.secrets import HIDDEN, is_secret, scrub, scrub_text, secret_values, without_secrets

SECRET_NAMES = [
    *("GH_PAT", "MYSQL_PWD", "DATABASE_URL", "SENTRY_DSN", "GOOGLE_APPLICATION_CREDENTIALS", "COOKIE"),
    *(
        "SESSION_KEY",
        "BEARER",
        "AWS_ACCESS_KEY_ID",
        "AWS_SESSION_TOKEN",
        "HF_TOKEN",
        "WANDB_API_KEY",
        "apiKey",
    ),
    *("client-secret", "SMTP_PASS", "REDIS_URL", "SLACK_WEBHOOK_URL", "env.DB_PASSWORD", "Authorization"),
]
ORDINARY_NAMES = [
    *("PATH", "PWD", "OLDPWD", "KEYBOARD", "MONKEY", "author", "token_count", "tokens_per_second", "pattern"),
    *("max_tokens", "pad_token", "TOKENIZERS_PARALLELISM", "compat", "HOME_URL", "passes", "secretary"),
]
# Put together here, so that no scanner takes this file for a leak.
TOKENS = [
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "11ABCDEFG0" * 4,
    "hf_" + "AbCdEfGhIj" * 3,
    "sk-" + "proj-a1b2c3d4e5f6g7h8i9j0",
    "AKIA" + "ABCDEFGHIJKLMNOP",
    "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0" + ".c2lnbmF0dXJl",
    "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_secret_s_name_is_recognised(name):
    assert is_secret(name)
    assert scrub({"environment": {name: "hunter22"}}) == {"environment": {name: HIDDEN}}


@pytest.mark.parametrize("name", ORDINARY_NAMES)
def test_an_ordinary_name_is_not(name):
    assert not is_secret(name)


@pytest.mark.parametrize("token", TOKENS, ids=lambda token: token[:6])
def test_a_token_is_recognised_by_its_shape_wherever_it_stands(token):
    assert token not in json.dumps(
        scrub({"note": f"logged in with {token}", "all": [["x", token]], token: 1})
    )
    assert token not in without_secrets({"PLAIN": token})["PLAIN"]
    assert secret_values({"PLAIN": token}) == [token]


def test_only_the_password_of_a_url_is_masked():
    url = "postgres://me:hunter22@db.example:5432/runs"
    assert scrub({"store": url}) == {"store": f"postgres://me:{HIDDEN}@db.example:5432/runs"}
    assert secret_values({"STORE": url}) == ["hunter22"]
    assert scrub_text("https://example.org:8080/a@b?x=1") == "https://example.org:8080/a@b?x=1"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("HF_TOKEN=abc python train.py", f"HF_TOKEN={HIDDEN} python train.py"),
        ("run --set environment.DB_PASSWORD='a b'", f"run --set environment.DB_PASSWORD={HIDDEN}"),
        ("train --api-key abc --lr 0.1", f"train --api-key {HIDDEN} --lr 0.1"),
        ("curl -H 'Authorization: Bearer abcdefgh12'", f"curl -H 'Authorization: Bearer {HIDDEN}'"),
    ],
)
def test_command_lines_keep_all_but_the_secret(text, masked):
    assert scrub_text(text) == masked
    assert scrub(scrub_text(text)) == masked


def test_pairs_of_name_and_value_are_masked():
    assert scrub([["HF_TOKEN", "abc"], ("DB_PASSWORD", 1234)]) == [
        ["HF_TOKEN", HIDDEN],
        ("DB_PASSWORD", HIDDEN),
    ]
    assert scrub({"name": "GH_PAT", "value": "abc"}) == {"name": "GH_PAT", "value": HIDDEN}
    assert scrub({"credentials": {"user": "me", "parts": ["a"]}}) == {"credentials": HIDDEN}


def test_ordinary_facts_stay_as_they_are():
    facts = {
        "PATH": "/usr/bin:/bin",
        "PWD": "/home/me/runs",
        "token": 3,
        "tokens": [512, 1024],
        "token_count": 12_000,
        "tokens_per_second": 3512.25,
        "tokenizer": "gpt2",
        "author": "A. Author <a@example.org>",
        "command": "python -m train --lr=0.1 --max-tokens 4096 --keyboard us",
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "url": "https://github.com/a/b.git",
        "remote": "git@github.com:a/b.git",
        "device": None,
        "deterministic": True,
        "target": {"top1": 0.761},
        "task": "task-classification-of-2015-images",
        "pair": ("a", 1),
    }
    assert scrub(facts) == facts


def test_a_value_nested_without_end_is_masked_not_followed():
    nested: list = []
    nested.append(nested)
    assert HIDDEN in json.dumps(scrub(nested))
