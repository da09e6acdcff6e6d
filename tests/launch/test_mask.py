"""Secrets in what a rank prints: gone, however its output is cut into pieces, and nothing else is touched."""

import itertools

from hypothesis import given
from hypothesis import strategies as some

from trainmark.base.secrets import is_secret, secret_values, without_secrets
from trainmark.launch.agent.ranks import MASK, Mask, RankLog

# Few letters, so that secrets overlap themselves, each other and the text around them.
words = some.text("ab", min_size=6, max_size=9)
texts = some.lists(some.one_of(words, some.text("ab\n", max_size=4)), max_size=8).map("".join)


def masked(secrets, pieces):
    mask = Mask(secrets)
    return b"".join([*(mask.hide(piece) for piece in pieces), mask.rest()])


def cut(data, places):
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


@given(some.lists(words, min_size=1, max_size=3), texts, some.lists(some.integers(0, 200), max_size=6))
def test_a_secret_never_appears_however_the_output_is_cut(secrets, around, places):
    text = (around + secrets[0] + around).encode()
    shown = masked(secrets, cut(text, places))
    assert not any(secret.encode() in shown for secret in secrets)
    assert MASK in shown


@given(some.binary(max_size=200), some.lists(some.integers(0, 200), max_size=6))
def test_what_holds_no_secret_comes_out_as_it_went_in(data, places):
    assert masked(["a secret of Zürich"], cut(data, places)) == data


def test_only_what_may_begin_a_secret_is_held_back():
    mask = Mask(["hunter22"])
    assert mask.hide(b"the password is hunt") == b"the password is "
    assert mask.hide(b"ing") == b"hunting"


def test_a_short_value_is_left_in_the_figures():
    assert masked(["1"], [b"step 1 of 11"]) == b"step 1 of 11"


def test_a_log_keeps_no_secret_and_its_arrivals_count_what_was_kept(tmp_path):
    log = RankLog(tmp_path / "rank0.log", ["hunter22"])
    for piece in (b"x hun", b"ter", b"22 y\n"):
        log.add(piece, moment=1.0)
    log.close()
    content = (tmp_path / "rank0.log").read_bytes()
    assert content == b"x ***** y\n"
    assert (tmp_path / "rank0.arrivals").read_text().split()[-2] == str(len(content))


def test_secrets_are_known_by_their_names():
    secret = [
        "WANDB_API_KEY",
        "HF_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",
        "GITHUB_AUTH",
        "SSH_PRIVATE_KEY",
    ]
    plain = ["PATH", "MONKEY", "TOKENIZERS_PARALLELISM", "KEYBOARD", "AUTHOR", "OMP_NUM_THREADS"]
    assert [name for name in secret + plain if is_secret(name)] == secret


def test_a_secret_s_value_is_not_shown_and_is_known_to_be_hidden():
    variables = {"HF_TOKEN": "hunter22", "PATH": "/bin", "EMPTY_TOKEN": ""}
    assert without_secrets(variables)["HF_TOKEN"] == "*****"
    assert secret_values(variables) == ["hunter22"]
