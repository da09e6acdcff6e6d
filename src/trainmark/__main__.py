"""`trainmark` and `python -m trainmark`: imports the command so that Ctrl-C ends it without a traceback."""

import gc
import sys

INTERRUPTED = 130
# Ten thousand trials are half a million objects that live until the end: looked through rarely.
COLLECTIONS = (100_000, 20, 50)


def main() -> None:
    gc.set_threshold(*COLLECTIONS)
    try:
        from trainmark.cli.main import main as command

        command()
    except KeyboardInterrupt:  # while it was being imported, or when it had ended
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
