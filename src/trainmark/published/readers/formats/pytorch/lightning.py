"""PyTorch Lightning's bar: `Epoch 0:  11%|█  | 2/18 [00:11<01:33,  5.82s/it, loss=10.473, v_num=193315]`.

The pace is a mean over the epoch so far, in s/it or, when fast, it/s. A bar is drawn again as its figures
come in; the last state counts.
"""

import re
from collections.abc import Iterable, Iterator

from trainmark.events import Scope
from trainmark.published.readers.format import Format, Kind, Rate, Setting

# NeMo has a colon more; Rich draws `Epoch 0/9 ━━━━ 938/938 0:00:12 • 0:00:00 77.92it/s v_num: 0`.
BAR = re.compile(
    rb"Epoch (?P<epoch>\d+)(?:/\d+)?:?(?: :)? +"
    rb"(?:\d+%\|[^|\n]{0,600}\| (?P<step>[1-9]\d*)/\d+ \[[\d:]+<[^,\]\n]{0,40}, *"
    rb"|[^\x00-\x7f ]+[^\x00-\x7f ]* +(?P<rich_step>[1-9]\d*)/\d+ [\d:]+ \xe2\x80\xa2 [-\d:]+ )"
    rb"(?P<pace>\d{1,12}(?:\.\d{1,9})?)(?P<unit>it/s|s/it)(?P<figures>[^\]\n]{0,2000})"
)
LOSS = re.compile(rb"\b(?:train_)?loss(?:_step)?[=:] ?([\d.e+-]+|nan|inf)")


def last_states(blocks: Iterable[bytes]) -> Iterator[bytes]:
    pending = shown = b""

    def rewritten(match: re.Match[bytes]) -> bytes:
        nonlocal pending, shown
        bar = b"lightning: epoch=%b step=%b " % (match["epoch"], match["step"] or match["rich_step"])
        done = b"" if bar == shown else pending
        pending, shown = bar + _figures(match), bar
        return done

    for block in blocks:
        yield BAR.sub(rewritten, block)
    yield pending


def _figures(bar: re.Match[bytes]) -> bytes:
    pace = float(bar["pace"])
    seconds = pace if bar["unit"] == b"s/it" else 1 / pace if pace else float("nan")
    loss = LOSS.search(bar["figures"])
    return b"seconds=%.6f loss=%b\n" % (seconds, loss[1] if loss else b"")


FORMAT = Format(
    name="lightning",
    title="PyTorch Lightning progress bar",
    framework="pytorch",
    sign=re.compile(
        rb"Epoch \d+:(?: :)? +\d+%\|[^|\n]{0,600}\| \d+/\d+ \[[\d:]+<[^\]\n]{0,40}(?:it/s|s/it)"
        rb"|Epoch \d+/\d+ +[^\x00-\x7f ]+ +\d+/\d+ [\d:]+ \xe2\x80\xa2 [-\d:]+ [\d.]+it/s"
    ),
    step=re.compile(
        rb"lightning: epoch=(?P<epoch>\d+) step=(?P<step>\d+) seconds=(?P<seconds>\S+) loss=(?P<loss>\S*)"
    ),
    rate=Rate("samples", Scope.RANK, Kind.CUMULATIVE),
    settings=(
        Setting("world_size", re.compile(rb"Starting with (?P<value>\d+) processes"), convert=int),
        Setting("world_size", re.compile(rb"GLOBAL_RANK: \d+, MEMBER: \d+/(?P<value>\d+)"), convert=int),
        Setting("precision", re.compile(rb"Using 16bit [^\n]{0,40}Mixed Precision \(AMP\)"), means="amp"),
        Setting("precision", re.compile(rb"Using bfloat16 [^\n]{0,40}Mixed Precision \(AMP\)"), means="bf16"),
    ),
    rewrite=last_states,
)
