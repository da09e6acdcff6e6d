"""`python -m trainmark.workloads.images.native OUT.so`: a library to carry to a machine without libjpeg."""

import platform
import sys

from trainmark.workloads.images.native import STATIC, Unbuilt, build


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        return "usage: python -m trainmark.workloads.images.native OUT.so"
    machine = {"x86_64": ("-mavx2", "-mfma")}
    try:
        build(sys.argv[1], machine.get(platform.machine(), ()), links=(STATIC,))
    except Unbuilt as error:
        return f"{sys.argv[1]}: {error}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
