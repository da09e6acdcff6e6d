"""Files that somebody else names: never waited for, never read past their limit."""

import os
import threading

import pytest

from trainmark.base.files import open_regular, read_input, read_regular


def test_a_file_of_just_the_limit_is_read_and_one_byte_more_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    assert read_regular(path, 100) == read_input(path, 100) == b"x" * 100
    for read in (read_regular, read_input):
        with pytest.raises(OSError, match="larger than 99 bytes"):
            read(path, 99)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/full"])
def test_a_device_is_refused_though_it_claims_to_be_empty(device):
    for read in (open_regular, lambda path: read_regular(path, 10), lambda path: read_input(path, 10)):
        with pytest.raises(OSError, match="regular file"):
            read(device)


def test_a_fifo_without_a_writer_is_refused_at_once(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    with pytest.raises(OSError, match="no regular file"):
        open_regular(path)
    with pytest.raises(OSError, match="no writer"):
        read_input(path, 10)


def test_a_pipe_that_a_shell_writes_is_read_up_to_the_limit(tmp_path):
    for size, limit in ((200_000, 200_000), (200_001, 200_000)):
        read_end, write_end = os.pipe()

        def write(end=write_end, size=size):
            with os.fdopen(end, "wb") as pipe:
                pipe.write(b"y" * size)

        writer = threading.Thread(target=write)
        writer.start()
        path = f"/dev/fd/{read_end}"
        try:
            if size > limit:
                with pytest.raises(OSError, match="larger"):
                    read_input(path, limit)
            else:
                assert read_input(path, limit) == b"y" * size
        finally:
            while os.read(read_end, 1 << 20):
                pass
            writer.join()
            os.close(read_end)


def test_folders_and_missing_files_are_told_by_the_system(tmp_path):
    with pytest.raises(OSError, match="regular file"):
        read_regular(tmp_path, 10)
    with pytest.raises(FileNotFoundError):
        read_input(tmp_path / "none", 10)
