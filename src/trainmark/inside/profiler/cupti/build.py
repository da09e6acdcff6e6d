"""Compile the library that records with CUPTI, where a C compiler and NVIDIA's headers are.

The headers come with the CUDA toolkit, and in the wheels of which frameworks have their CUDA: run this by the
framework's own interpreter (`python -m trainmark.inside.profiler.cupti.build FOLDER` prints the
library's path).
"""

import collections
import glob
import hashlib
import os
import shutil
import subprocess
import sys
from typing import Dict, Optional

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "injection.c")
FALLBACK = os.path.join(HERE, "fallback")
FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra", "-pthread")
COMPILERS = ("cc", "gcc", "clang")
LIBRARY = "TRAINMARK_CUPTI"
CUPTI_LIBRARY = "TRAINMARK_CUPTI_LIBRARY"
INJECTION = "CUDA_INJECTION64_PATH"
FILE, AFTER, SECONDS = "TRAINMARK_CUPTI_FILE", "TRAINMARK_CUPTI_AFTER", "TRAINMARK_CUPTI_SECONDS"

# `path` of the library, or `reason`, a sentence that says why there is none.
Built = collections.namedtuple("Built", "path reason")


def build(folder: str) -> Built:
    """Compile into `folder`, once for the same source, headers and compiler."""
    compiler = _compiler()
    if compiler is None:
        return Built(None, "No C compiler is here to profile CUDA with: install gcc or clang, or set CC.")
    includes = include_folders()
    if includes is None:
        return Built(
            None,
            "The headers of CUPTI (cupti.h, cuda.h) are not here: install the CUDA toolkit, or the wheels"
            " nvidia-cuda-cupti and nvidia-cuda-runtime into the program's environment.",
        )
    path = os.path.join(folder, "cupti-{}.so".format(_fingerprint(compiler, includes)))
    if os.path.exists(path):
        return Built(path, None)
    os.makedirs(folder, exist_ok=True)
    part = "{}.{}.part".format(path, os.getpid())  # several ranks may compile at once
    command = [compiler] + list(FLAGS)
    for include in includes:
        command += ["-isystem", include]
    command += [SOURCE, "-o", part, "-ldl"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
        return Built(None, "The CUPTI library does not compile with {}: {}".format(compiler, first[:300]))
    os.replace(part, path)
    return Built(path, None)


def environment(
    path: str, output: Optional[str] = None, after: float = 0.0, seconds: float = 10.0
) -> Dict[str, str]:
    """Return the variables under which a program is profiled by the library at `path`.

    With hooks the library is opened when they start it. A program without gives its records, `seconds` of
    them from `after` seconds after its start on, to a file for each process that begins with `output`.
    """
    variables = {LIBRARY: path}
    cupti = os.environ.get(CUPTI_LIBRARY) or cupti_library()
    if cupti:
        variables[CUPTI_LIBRARY] = cupti
    if output is not None:
        variables.update({INJECTION: path, FILE: output, AFTER: str(after), SECONDS: str(seconds)})
    return variables


def include_folders():
    """Return the folders in which all needed headers are; None where one is missing."""
    folders = []
    for header in ("cupti.h", "cuda.h"):
        folder = _folder_with(header)
        if folder is None:
            return None
        if folder not in folders:
            folders.append(folder)
    # Of CUDA 12 this one has a wheel of its own; without it, ours does.
    compiler_headers = [folder for folder in _candidates() if os.path.exists(os.path.join(folder, "crt"))]
    folders += [folder for folder in compiler_headers[:1] if folder not in folders]
    return folders if compiler_headers else folders + [FALLBACK]


def cupti_library():
    """Return the newest libcupti of the toolkit or the wheels; None leaves the search to the loader."""
    patterns = ["nvidia/cu13/lib/libcupti.so.*", "nvidia/cuda_cupti/lib/libcupti.so.*"]
    for entry in sys.path:
        for pattern in patterns:
            matches = sorted(glob.glob(os.path.join(glob.escape(entry), pattern)))
            if matches:
                return matches[-1]
    for home in _toolkits():
        for place in ("extras/CUPTI/lib64/libcupti.so", "lib64/libcupti.so"):
            if os.path.exists(os.path.join(home, place)):
                return os.path.join(home, place)
    return None


def _folder_with(header):
    return next((folder for folder in _candidates() if os.path.exists(os.path.join(folder, header))), None)


def _candidates():
    """Yield the folders that may have headers: those of the wheels first, as they belong to the framework."""
    for entry in sys.path:
        for place in ("cu13", "cuda_cupti", "cuda_runtime", "cuda_nvcc"):
            yield os.path.join(entry, "nvidia", place, "include")
    for home in _toolkits():
        yield os.path.join(home, "extras", "CUPTI", "include")
        yield os.path.join(home, "include")


def _toolkits():
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    return [home for home in homes + ["/usr/local/cuda"] if home]


def _compiler():
    chosen = os.environ.get("CC", "").split()
    return shutil.which(chosen[0]) if chosen else next(filter(None, map(shutil.which, COMPILERS)), None)


def _fingerprint(compiler, includes):
    digest = hashlib.sha256("\n".join([compiler] + list(FLAGS) + list(includes)).encode())
    with open(SOURCE, "rb") as file:
        digest.update(file.read())
    return digest.hexdigest()[:16]


def main():
    built = build(sys.argv[1])
    print(built.path if built.path is not None else built.reason)
    raise SystemExit(0 if built.path is not None else 3)


if __name__ == "__main__":
    main()
