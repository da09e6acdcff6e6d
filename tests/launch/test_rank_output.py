"""What ranks print is kept whole, with the time at which it came."""

from small_jobs import carry_out, printed, python_job, shell_job

from trainmark.launch.job import Job
from trainmark.launch.outcome import EndCause


def arrivals(job, rank=0):
    lines = job.log(rank).with_suffix(".arrivals").read_text().splitlines()
    return [(int(size), float(seconds)) for size, seconds in map(str.split, lines)]


def test_standard_output_and_error_are_kept_in_one_log(tmp_path, launcher):
    job = shell_job(tmp_path, "echo one; echo two >&2; echo three")
    carry_out(launcher, job)
    assert job.log(0).read_text() == "one\ntwo\nthree\n"


def test_bytes_that_are_no_text_are_kept_as_they_are(tmp_path, launcher):
    job = python_job(tmp_path, "sys.stdout.buffer.write(bytes(range(256)) * 100)")
    carry_out(launcher, job)
    assert job.log(0).read_bytes() == bytes(range(256)) * 100


def test_a_flood_is_kept_to_the_last_byte_of_each_rank(tmp_path, launcher):
    job = python_job(tmp_path, "sys.stdout.buffer.write(bytes([65 + rank]) * 5_000_000)", ranks=2)
    carry_out(launcher, job)
    assert [job.log(rank).read_bytes() for rank in range(2)] == [b"A" * 5_000_000, b"B" * 5_000_000]


def test_a_last_line_without_a_newline_is_kept(tmp_path, launcher):
    job = shell_job(tmp_path, "printf 'half a line'")
    carry_out(launcher, job)
    assert job.log(0).read_bytes() == b"half a line"


def test_last_words_on_being_stopped_are_kept_even_when_they_are_long(tmp_path, launcher):
    job = python_job(
        tmp_path,
        """
        import signal
        def leave(*_):
            sys.stdout.buffer.write(b"w" * 1_000_000)
            sys.exit(1)
        signal.signal(signal.SIGTERM, leave)
        print("ready")
        time.sleep(600)
        """,
    )
    carry_out(launcher, job, stop_asked=lambda: printed(job, b"ready\n"))
    assert job.log(0).read_bytes() == b"ready\n" + b"w" * 1_000_000


def test_the_arrivals_grow_in_size_and_time_up_to_the_whole_log(tmp_path, launcher):
    job = python_job(tmp_path, "for n in range(20): print(n); time.sleep(0.02)")
    carry_out(launcher, job)
    sizes, times = zip(*arrivals(job), strict=True)
    assert len(sizes) > 1
    assert list(sizes) == sorted(set(sizes)) and list(times) == sorted(times)
    assert sizes[-1] == job.log(0).stat().st_size


def test_a_line_arrives_when_it_was_printed(tmp_path, launcher):
    job = python_job(
        tmp_path,
        """
        for _ in range(3):
            before = time.monotonic()
            print("x", end="")
            open(folder + "/printed", "a").write(f"{before}\\n")
            time.sleep(0.6)
        """,
    )
    carry_out(launcher, job)
    printed = [float(line) for line in (tmp_path / "printed").read_text().splitlines()]
    came = [seconds for _, seconds in arrivals(job)]
    assert all(before <= seconds for before, seconds in zip(printed, came, strict=True))
    assert all(seconds <= after for seconds, after in zip(came, printed[1:], strict=False))


def test_a_program_that_does_not_exist_fails_at_once_and_says_so_in_its_log(tmp_path, launcher):
    job = Job(("/no/such/program",), {}, tmp_path, tmp_path, nodes=1, ranks_per_node=2)
    ending = carry_out(launcher, job)
    assert (ending.cause, ending.exits) == (EndCause.RANK_FAILED, {0: 127, 1: 127})
    assert "cannot start" in job.log(0).read_text() and "/no/such/program" in job.log(0).read_text()


def test_a_working_folder_that_is_gone_fails_at_once(tmp_path, launcher):
    job = Job(("true",), {}, tmp_path / "gone", tmp_path, nodes=1, ranks_per_node=1)
    assert carry_out(launcher, job).exits == {0: 127}


def test_output_that_cannot_be_kept_is_told_and_does_not_block_the_rank(tmp_path, launcher):
    job = python_job(tmp_path, "sys.stdout.buffer.write(b'x' * 1_000_000)")
    (tmp_path / "logs").mkdir()
    job.log(0).symlink_to("/dev/full")
    session = launcher.start(job)
    while not session.exits(30.0):
        pass
    session.stop()
    assert session.lost_output is not None
    assert session.lost_output.strerror == "No space left on device"
