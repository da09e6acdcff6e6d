"""Arbitrary bytes through cleaning, recognition, every format and the figure."""

import sys

import atheris

with atheris.instrument_imports(include=["trainmark"]):
    from trainmark.logs.input import Cleaning, clean_blocks
    from trainmark.logs.read import read_runs
    from trainmark.logs.recognition import UnrecognizedError, formats, recognize
    from trainmark.measure.log_figure import LogFacts, logged_figure

FORMATS = list(formats().values())


def read(data: bytes) -> None:
    blocks = list(clean_blocks([data[1:]], Cleaning()))
    try:
        chosen, _ = recognize(blocks, "fuzz")
        format = chosen.format
    except UnrecognizedError:
        format = FORMATS[data[0] % len(FORMATS)] if data else FORMATS[0]
    for run in read_runs(format, iter(blocks), "fuzz"):
        logged_figure(run.columns(), LogFacts(**run.facts()))


if __name__ == "__main__":
    atheris.Setup(sys.argv, read)
    atheris.Fuzz()
