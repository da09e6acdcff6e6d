"""The columns that nccl-tests prints, by name: old versions and new, one direction and two."""

from __future__ import annotations

import pytest

from trainmark.runner.fabric import NcclTest, read_nccl_tests

NEW = """\
# nThread 1 nGpus 2 minBytes 8 maxBytes 1048576 step: 8(factor) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
#  Rank  0 Group  0 Pid   1001 on     here device  0 [0x01] Some GPU
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1     6.50    0.00    0.00      0     6.40    0.00    0.00      0
     1048576        262144     float     sum      -1    50.00   20.97   20.97      0    49.00   21.40   21.40    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 10.4
"""  # noqa: E501
OLD = """\
#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                       (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
        1024           256     float     sum    20.00    0.05    0.10  2e-07    21.00    0.05    0.10  2e-07
"""


def test_each_size_has_its_time_and_bus_bandwidth_out_of_place():
    small, large = read_nccl_tests(NEW)
    assert (small.bytes, large.bytes) == (8, 1048576)
    assert small.seconds == pytest.approx(6.5e-6)
    assert large == NcclTest(1048576, pytest.approx(50e-6), pytest.approx(20.97e9))


def test_a_version_with_other_columns_is_read_by_their_names():
    assert list(read_nccl_tests(OLD)) == [NcclTest(1024, pytest.approx(20e-6), pytest.approx(0.1e9))]


@pytest.mark.parametrize(
    "text", ["", "no numbers here", "8 2 float sum -1 6.5 0.0 0.0 0", OLD.replace("20.00", "oops")]
)
def test_what_is_no_table_gives_nothing(text):
    assert list(read_nccl_tests(text)) == []


def test_a_line_that_was_cut_is_left_out():
    cut = NEW.replace("    49.00   21.40   21.40    N/A", "")
    assert [each.bytes for each in read_nccl_tests(cut)] == [8]
