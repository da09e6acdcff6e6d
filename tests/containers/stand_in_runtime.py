"""A stand-in for `docker run` and its like: no image, but the same walls around the environment.

Like the real ones it hands a program only the variables it was told to, and only mounted paths.
"""

import os
import sys

WITH_VALUE = {
    "--network",
    "--ipc",
    "--user",
    "--volume",
    "--workdir",
    "--env",
    "--gpus",
    "--device",
    "--userns",
}


def main(words: list[str]) -> None:
    assert words.pop(0) == "run"
    passed, mounts, folder = {"PATH": os.environ["PATH"]}, [], "/"
    while words[0].startswith("--"):
        option = words.pop(0)
        value = words.pop(0) if option in WITH_VALUE else ""
        if option == "--env":
            name, equals, given = value.partition("=")
            known = given if equals else os.environ.get(name)
            passed |= {} if known is None else {name: known}
        elif option == "--volume":
            mounts.append(value.split(":")[1])
        elif option == "--workdir":
            folder = value
    image, *program = words
    if image == "absent":
        sys.exit("Unable to find image 'absent:latest' locally")
    for path in (folder, passed["PYTHONPATH"].split(os.pathsep)[0]):
        assert any(path == mount or path.startswith(mount + "/") for mount in mounts), (
            f"{path} is not mounted"
        )
    os.chdir(folder)
    os.execvpe(program[0], program, passed)


main(sys.argv[1:])
