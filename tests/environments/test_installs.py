"""`trainmark frameworks install` and `remove`: a whole environment, or none and a sentence."""

import json
import os
import signal
import subprocess
import sys

import pytest
from toy_frameworks import HEADER

from trainmark.machine.frameworks.installed import State, find, python_of, standing


def refused(done):
    assert done.code == 2
    assert done.errors.splitlines()[-1].startswith("trainmark: ")
    return done.errors.splitlines()[-1]


def test_an_install_ends_with_an_interpreter_that_imports_the_locked_version(whole):
    completed = subprocess.run(
        [whole.python, "-c", "import toy; print(toy.__version__)"], capture_output=True
    )
    assert completed.stdout.strip() == b"1.0"
    marker = json.loads(whole.marker.read_text())
    assert (marker["framework"], marker["version"]) == ("toy", "1.0")


def test_progress_goes_to_standard_error_a_line_at_a_time(whole):
    assert whole.done.errors.splitlines()[0].startswith("toy [0/1] environment with Python 3.")
    assert "toy [1/1] checking that toy imports" in whole.done.errors
    assert whole.done.output.startswith("toy 1.0 with Python 3.")


def test_a_variable_that_leads_pip_astray_does_not(whole):
    assert not (whole.home.parent / "astray").exists()


def test_what_is_installed_is_not_made_again(installed):
    before = installed.marker.stat().st_mtime_ns
    assert installed.call("install", "toy").code == 0
    assert installed.marker.stat().st_mtime_ns == before


def test_a_new_lock_replaces_the_environment(installed):
    installed.release("2.0")
    installed.lock("2.0")
    assert installed.call("install", "toy").code == 0
    assert find("toy").version == "2.0"
    assert sorted(path.name for path in installed.environment.parent.iterdir()) == [
        ".toy.lock", "toy", "toy.log"
    ]  # fmt: skip


def test_an_install_that_fails_leaves_the_environment_that_was_there(installed):
    installed.lock("2.0")
    sentence = refused(installed.call("install", "toy"))
    assert "no wheel of toy==2.0" in sentence
    assert find("toy").version == "1.0"
    assert subprocess.run([installed.python, "-c", "import toy"]).returncode == 0


def test_a_wheel_for_another_platform_is_told_from_a_network_that_is_down(toy):
    next(toy.wheels.iterdir()).unlink()
    toy.release(tag="py3-none-win32")
    sentence = refused(toy.call("install", "toy"))
    assert "no wheel of toy==1.0" in sentence and str(toy.home / "environments" / "toy.log") in sentence
    assert not toy.environment.exists()


def test_an_index_that_cannot_be_reached_is_named_as_such(toy):
    closed = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "1", "PIP_NO_INDEX": ""}
    next(toy.wheels.iterdir()).unlink()
    assert "the package index was not reached" in refused(toy.call("install", "toy", **closed))


def test_a_framework_that_says_another_version_than_its_lock_is_not_installed(toy):
    toy.release(source="__version__ = '0.5'")
    assert "it says to be 0.5, and the lock says 1.0" in refused(toy.call("install", "toy"))
    assert not toy.environment.exists() and find("toy") is None


def test_a_framework_that_does_not_import_is_not_installed_and_the_lock_may_say_what_mends_it(toy):
    toy.lock(header=f"{HEADER}# if the import fails: install libtoy and try again\n")
    toy.release(source="raise ImportError('libtoy.so.1: cannot open shared object file')")
    sentence = refused(toy.call("install", "toy"))
    assert "libtoy.so.1: cannot open" in sentence and "install libtoy and try again" in sentence
    assert not toy.environment.exists() and find("toy") is None


def test_a_library_that_the_lock_links_lies_beside_the_package(toy):
    toy.lock(header=f"{HEADER}# link: toy/libarm.so -> libc.so.6\n# link: toy/no.so -> libnosuch.so.1\n")
    toy.release(source="import ctypes, os\nctypes.CDLL(os.path.dirname(__file__) + '/libarm.so')")
    done = toy.call("install", "toy")
    assert done.code == 0, done.errors


def test_a_python_outside_the_range_is_refused_before_anything_is_made(toy):
    toy.lock(header="# python: 3.7\n# import: toy\n")
    sentence = refused(toy.call("install", "toy", "--python", sys.executable))
    assert "needs Python 3.7" in sentence and "--python" in sentence
    assert not toy.environment.exists()


def test_without_a_suitable_python_the_range_and_the_way_to_one_are_named(toy):
    toy.lock(header="# python: 3.99\n# import: toy\n")
    sentence = refused(toy.call("install", "toy"))
    assert "needs Python 3.99, and none was found" in sentence and "pyenv install 3.99" in sentence


def test_a_python_that_is_none_is_named(toy):
    assert "did not answer as Python does" in refused(toy.call("install", "toy", "--python", "/bin/true"))


@pytest.mark.parametrize("words", [("install", "toi"), ("remove", "toi"), ("install", "toy", "toi")])
def test_an_unknown_name_is_refused_with_the_nearest_before_anything_is_made(toy, words):
    assert refused(toy.call(*words)).endswith("there is no framework 'toi'; did you mean 'toy'?")
    assert not toy.environment.exists()


def test_a_platform_without_a_wheel_is_refused_with_the_reason(toy):
    (toy.locks / "toy.txt").write_text("# unavailable: Toy runs on wood only; buy some\n")
    assert "cannot be installed here: Toy runs on wood only; buy some." in refused(toy.call("install", "toy"))


def test_a_platform_without_a_lock_is_refused_with_what_to_do(toy):
    (toy.locks / "toy.txt").rename(toy.locks / "toy.plan9-mips.txt")
    assert "there is no lock of toy for" in refused(toy.call("install", "toy"))


def test_too_little_room_is_seen_before_anything_is_made(toy):
    toy.lock(header="# import: toy\n# size: 999999999 MB\n")
    assert "takes 999,999,999 MB" in refused(toy.call("install", "toy"))
    assert not toy.environment.exists()


def test_a_disk_that_fills_up_leaves_nothing_and_is_named(small_disk):
    small_disk.release(source=f"# {os.urandom(15_000_000).hex()}")
    sentence = refused(small_disk.call("install", "toy"))
    assert "disk" in sentence and "full" in sentence
    assert not small_disk.environment.exists()


def stopped_at_import(toy):
    """An install that has everything in place but the marker, and goes no further."""
    arrived = toy.home.parent / "arrived"
    toy.release(source=f"import pathlib, time\npathlib.Path({str(arrived)!r}).touch()\ntime.sleep(600)")
    process = toy.start("install", "toy")
    toy.wait_for(arrived)
    return process


def stopped_at_start(toy):
    """An install that has begun to make the environment."""
    process = toy.start("install", "toy")
    toy.wait_for(toy.environment)
    return process


@pytest.mark.parametrize(
    ("start", "number"), [(stopped_at_import, signal.SIGTERM), (stopped_at_start, signal.SIGINT)]
)
def test_an_interrupted_install_clears_up_behind_itself(toy, start, number):
    process = start(toy)
    process.send_signal(number)
    done = toy.finish(process)
    assert done.code == 130 and "nothing half-installed is left" in done.errors
    assert not toy.environment.exists()


def test_a_killed_install_is_no_environment_and_the_next_install_makes_one(toy):
    process = stopped_at_import(toy)
    process.kill()
    process.communicate()
    assert toy.python.exists() and find("toy") is None and python_of("toy") is None
    assert standing("toy")[0] is State.INTERRUPTED
    toy.release()
    assert toy.call("install", "toy").code == 0
    assert find("toy").version == "1.0"


def test_an_install_killed_in_the_middle_gives_the_former_environment_back(installed):
    installed.lock("2.0")
    installed.release("2.0")
    process = installed.start("install", "toy")
    installed.wait_for(installed.environment.parent / ".toy.former")
    process.kill()
    process.communicate()
    installed.lock("1.0")
    assert installed.call("install", "toy").code == 0
    assert find("toy").version == "1.0"


def test_two_installs_at_once_make_one_environment(toy):
    first, second = toy.start("install", "toy"), toy.start("install", "toy")
    done = [toy.finish(first), toy.finish(second)]
    assert [each.code for each in done] == [0, 0]
    assert sum("another install or removal is at work" in each.errors for each in done) == 1
    assert sum("environment with Python" in each.errors for each in done) == 1
    assert find("toy").version == "1.0"


def test_one_that_fails_does_not_keep_the_others_from_being_installed(toy):
    (toy.locks / "wood.txt").write_text("# unavailable: no wood here; buy some\n")
    done = toy.call("install", "wood", "toy")
    assert done.code == 2 and "no wood here" in done.errors
    assert find("toy") is not None


def test_a_removed_environment_is_gone_and_can_be_removed_again(installed):
    assert installed.call("remove", "toy").output == "toy removed\n"
    assert not installed.environment.exists() and find("toy") is None
    assert installed.call("remove", "toy").output == "toy was not installed\n"
