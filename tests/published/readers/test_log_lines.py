"""Cleaning what terminals, launchers and shells do to a log."""

from __future__ import annotations

import pytest

from trainmark.logs.input import LONGEST_LINE, Cleaning, by_rank, clean_blocks


def clean(*chunks: bytes) -> bytes:
    return b"".join(clean_blocks(chunks))


def test_a_block_with_nothing_to_clean_is_passed_on_as_the_same_bytes():
    block = b"plain line\n" * 1000
    assert clean(block) == block


def test_blocks_end_at_line_ends_however_the_bytes_come():
    text = b"first line\nsecond line\nthird\n"
    for size in range(1, len(text)):
        blocks = list(clean_blocks(text[i : i + size] for i in range(0, len(text), size)))
        assert b"".join(blocks) == text
        assert all(block.endswith(b"\n") for block in blocks if block)


def test_a_last_line_without_an_end_gets_one():
    assert clean(b"one\ntwo") == b"one\ntwo\n"


def test_colours_and_window_titles_go():
    assert (
        clean(b"\x1b[32m[2020-12-16]\x1b[0m ips\x1b[1;31m: 5\n\x1b]0;title\x07x\n")
        == b"[2020-12-16] ips: 5\nx\n"
    )


def test_every_state_of_a_progress_bar_is_a_line():
    assert clean(b" 1/3 a\r 2/3 b\r 3/3 c\r\nnext\r\n") == b" 1/3 a\n 2/3 b\n 3/3 c\nnext\n"


def test_backspaces_go():
    assert clean(b"1/9 - loss: 1\x08\x08\x08\n") == b"1/9 - loss: 1\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_other_encodings_become_plain_bytes(encoding):
    text = "iter 1, loss: 2.5\niter 2, loss: 2.25\n"
    data = text.encode(encoding)
    assert clean(data[:7], data[7:]) == text.encode()


def test_marked_utf16_keeps_what_is_not_ascii():
    assert clean("1/9 ━━━ loss: 1\n".encode("utf-16")) == "1/9 ━━━ loss: 1\n".encode()


def test_utf16_appended_to_other_text_is_read_too():
    assert clean(b"first\n" + "second\n".encode("utf-16-le")) == b"first\nsecond\n"


def test_stray_nul_bytes_go():
    assert clean(b"\0\0loss\0: 1\n") == b"loss: 1\n"


def test_a_line_of_a_hundred_megabytes_is_cut_and_counted():
    cleaning = Cleaning()
    chunks = (b"x" * (1 << 20) for _ in range(100))
    blocks = list(clean_blocks([b"before\n", *chunks, b"tail\nafter\n"], cleaning))
    assert b"".join(blocks) == b"before\n" + b"x" * LONGEST_LINE + b"\nafter\n"
    assert cleaning.damaged_lines == 1


def test_an_overlong_line_inside_a_block_is_cut_too():
    cleaning = Cleaning()
    block = b"a\n" + b"y" * (5 * LONGEST_LINE) + b"\nb\n"
    assert b"".join(clean_blocks([block], cleaning)) == b"a\n" + b"y" * LONGEST_LINE + b"\nb\n"
    assert cleaning.damaged_lines == 1


def test_a_launchers_tag_tells_the_rank_and_goes():
    block = clean(b"[1,0]<stderr>:loss 1\n[1,12]<stdout>:loss 2\nuntagged\n[1,0]<stderr>:loss 3\n")
    assert by_rank(block) == [(0, b"loss 1\nloss 3\n"), (12, b"loss 2\n"), (None, b"untagged\n")]


def test_a_tag_with_a_date_before_it_goes_with_the_date():
    assert by_rank(clean(b"Fri Apr  9 10:16:27 2021[1,1]<stdout>:DLL x\n")) == [(1, b"DLL x\n")]


def test_a_ranks_own_tag_inside_a_line_only_joins_its_writes():
    block = clean(b"[1,0]<stderr>:algoreg.h[1,0]<stderr>::120: Running\n")
    assert by_rank(block) == [(0, b"algoreg.h:120: Running\n")]


def test_another_ranks_tag_inside_a_line_begins_a_line_of_that_rank():
    block = clean(b"[1,0]<stderr>:loss 1[1,3]<stderr>:loss 2\n")
    assert by_rank(block) == [(0, b"loss 1\n"), (3, b"loss 2\n")]
