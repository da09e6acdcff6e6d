"""What is known of devices, and of the models that reports train.

Devices by their names, with the most that each can do. Operations and sizes of a language model, and
ResNet-50: forward and backward pass over N parameters are 6 N operations a token (Kaplan et al. 2020, §2.1).
Attention adds 12 L C T for L layers of width C at length T, half of it where only the causal half is counted.
Counting the forward pass that activation checkpointing repeats makes 8 of every 6 (Korthikanti et al. 2022,
appendix A).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trainmark.audit.grid import GridColumn, GridRow, TableFigure, TableGrid
from trainmark.audit.report import Report
from trainmark.audit.terms import Number, is_per_device, seconds_per_unit, simplify_head
from trainmark.machine.devices import known_peak_flops

DEVICES_FILE = Path(__file__).with_name("devices.yaml")
# Any accelerator by its usual names; one that the list does not know leaves the limits open.
ACCELERATOR = re.compile(
    r"\bG?[VAHBPKTL]\d{1,3}0?0(?![0-9])|\bT4\b|\bL40S?\b|\b(?:RTX|GTX|GeForce|Tesla|Quadro|TITAN|TPU|Ascend|Gaudi|MI\d{2,3}|DGX|2080|1080)"
    r"|\bv[3-6][ep]?-\d|昇腾|寒武纪",
    re.I | re.A,
)
# A processor by its usual names, or any device where our own reports name it.
PROCESSOR = re.compile(
    r"\b(?:Xeon|EPYC|Ryzen|Threadripper|Core i\d|Neoverse|Graviton|Kunpeng|Altra|Grace)\b|鲲鹏"
    r"|(?:^|· )(?:device|设备) \S",
    re.I | re.A,
)
PRECISIONS = ("fp32", "tf32", "fp16", "bf16")
# Where a report says FP32, a device that has TF32 may have used it: frameworks turn it on unasked.
MAY_MEAN = {"fp32": ("fp32", "tf32"), "amp": ("fp16", "bf16"), None: PRECISIONS}


@dataclass(frozen=True)
class NamedDevice:
    """A device, by the name that its peak is known by; `rates` in TFLOP/s are those of no such table."""

    name: str
    family: str
    memory_mib: int
    rates: tuple[tuple[str, float], ...] = ()
    variants: tuple[float, ...] = ()

    def peak_flops(self, precision: str | None) -> float | None:
        """The highest rate that a precision's name can stand for."""
        meant = MAY_MEAN.get(precision, (precision or "",))
        known = [peak for name in meant if (peak := self._peak(name))]
        return max(known, default=None)

    def dense_peaks(self) -> tuple[float, ...]:
        """The dense peaks in FLOP/s that a 16-bit utilisation may be taken of, the usual one first."""
        usual = self._peak("bf16") or self._peak("fp16")
        return (*((usual,) if usual else ()), *(1e12 * rate for rate in self.variants))

    def fp8_peak(self) -> float | None:
        return self._peak("fp8")

    def _peak(self, precision: str) -> float | None:
        own = dict(self.rates).get("bf16" if precision == "fp16" else precision)
        return own * 1e12 if own else known_peak_flops(self.name, precision)


def devices_for(report: Report, words: Sequence[str]) -> tuple[NamedDevice, ...]:
    """The devices that a table's own words name, else all that the report does."""
    if any(ACCELERATOR.search(text) for text in words):
        return devices_in_words(words)
    return tuple(report.cached("devices", lambda whole: devices_in_words(_report_texts(whole))))


def devices_in_words(texts: Iterable[str]) -> tuple[NamedDevice, ...]:
    """All known devices in some texts; none where one is named that is not known."""
    devices: dict[str, NamedDevice] = {}
    for text in texts:
        if not ACCELERATOR.search(text):
            continue
        known = [device for pattern, device in _devices() if pattern.search(text)]
        if not known:
            return ()
        variants: dict[str, NamedDevice] = {}
        for device in known:
            variants.setdefault(device.family, device)
        devices.update((device.name, device) for device in variants.values())
    return tuple(devices.values())


def names_device(report: Report) -> bool:
    return report.mentions(ACCELERATOR) or report.mentions(PROCESSOR)


def _report_texts(report: Report) -> list[str]:
    texts = [passage.text[:2000] for passage in (*report.headings, *report.prose)]
    for table in report.tables:
        texts += [table.caption, *(cell.text[:200] for row in (table.head, *table.rows) for cell in row)]
    return texts


@cache
def _devices() -> list[tuple[re.Pattern[str], NamedDevice]]:
    import yaml

    entries: list[dict[str, Any]] = yaml.safe_load(DEVICES_FILE.read_text(encoding="utf-8"))
    return [(re.compile(entry["pattern"], re.I | re.A), _device(entry)) for entry in entries]


def _device(entry: dict[str, Any]) -> NamedDevice:
    rates = tuple((name, float(entry[name])) for name in ("bf16", "fp8") if name in entry)
    return NamedDevice(
        entry["name"], entry["family"], entry["memory"], rates, tuple(map(float, entry.get("variants", ())))
    )


TOKENS = re.compile(r"tokens?\b|\btoks?\b|\bt/s|\btps\b")
SEQUENCES = re.compile(r"samples?\b|seq(?:uence)?s?\b|sentences?\b|\bs/s")
SUFFIXES = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
PREFIXES = (("giga", 1e9), ("peta", 1e15), ("tera", 1e12), ("gflop", 1e9), ("pflop", 1e15), ("tflop", 1e12))
SIZE_IN_WORDS = re.compile(r"(?<![\w.x×-])(\d{1,4}(?:\.\d{1,3})?) ?(b|m|billion|million)(?![a-z0-9])", re.I)
# Of these only some parameters take part in a token: their number says little about the operations.
SPARSE_MODEL = re.compile(
    r"\bmoe\b|mixtral|deepseek|\d+x\d+(?:\.\d+)?b|[-_ ]a\d+b|maverick|scout|llama-?4|experts?"
    r"|gpt[-_ ]?oss|dbrx|grok|kimi|olmoe|lora|adapter|peft",
    re.I,
)
# Families without experts: all parameters take part in every token.
DENSE_MODEL = re.compile(
    r"llama|gpt-?[23]|\bmpt\b|\bopt\b|bloom|falcon|pythia|mistral|gemma|\bphi\b|dense", re.I
)
QUANTITY_WORDS = re.compile(
    r"[\W_]|mfu|hfu|flops?|tera|giga|peta|tflops?|achieved|model|sec|per|gpu|chip|device|utili[sz]ation"
)


# Rates by the unit that their heads name, and whether they are of one device.
RATES = {
    "tokens": (TOKENS, False),
    "device_tokens": (TOKENS, True),
    "sequences": (SEQUENCES, False),
    "device_sequences": (SEQUENCES, True),
}


def quantity(row: GridRow, name: str) -> TableFigure | None:
    """The one figure of a rate or a role in a row, in plain units; None where it has none, or several."""
    if name == "batch_in_tokens":
        batch, length = quantity(row, "global_batch"), quantity(row, "sequence_length")
        return batch.scaled(length.number.value) if batch and length else None
    unit, per_device = RATES.get(name, (None, False))
    figures = [
        figure
        for figure in row.of("throughput" if unit else name)
        if not unit or (unit.search(simplify_head(figure.head)) and is_per_device(figure.head) is per_device)
    ]
    if len(figures) != 1 or (not unit and figures[0].number.value <= 0):
        return None
    (figure,) = figures
    suffix = figure.number.rest.lower()
    if name == "step_time":
        return figure if suffix == "s" else None
    # The length `8k` is 8192; any other number with its suffix worked in: `1.2M` is 1,200,000.
    factor = {"k": 1024.0}.get(suffix) if name == "sequence_length" else SUFFIXES.get(suffix)
    figure = figure.scaled(factor) if factor else figure
    return figure.scaled(1 / (seconds_per_unit(figure.head) or 1.0)) if unit else figure


def value_of(row: GridRow, name: str) -> float | None:
    figure = quantity(row, name)
    return figure.number.value if figure else None


def operations(row: GridRow, column: GridColumn) -> TableFigure | None:
    """Operations a second, by the prefix in the head; those of one device or of all, as the head says."""
    figure = row.in_column(column.index)
    head = simplify_head(column.head)
    factor = next((size for word, size in PREFIXES if word in head.replace(" ", "")), None)
    if figure is None or factor is None or figure.number.value <= 0:
        return None
    return figure.scaled(factor)


def share_in(row: GridRow, column: GridColumn) -> TableFigure | None:
    """A utilisation as a fraction of one."""
    figure = row.in_column(column.index)
    if figure is None or figure.number.value <= 0:
        return None
    in_percent = "%" in figure.number.rest or "%" in column.head or figure.number.value > 1.5
    return figure.scaled(0.01) if in_percent else figure


def parameters(grid: TableGrid, row: GridRow) -> Number | None:
    """The parameters of a dense model: from its column, its name in the row, or the words above."""
    names = " ".join(cell.text for cell in row.cells)
    if SPARSE_MODEL.search(f"{names} {grid.words}"):
        return None
    if stated := quantity(row, "parameters"):
        number, head = stated.number, simplify_head(stated.head)
        in_billions = number.value < 2000 and (re.search(r"billion|\(b\)", head) or not number.rest)
        return number.scaled(1e9) if in_billions else number
    for texts in (
        [cell.text for cell in row.cells],
        [grid.table.caption],
        list(reversed(grid.table.headings)),
    ):
        sizes = {match.group(0): match for text in texts for match in SIZE_IN_WORDS.finditer(text[:300])}
        if len(sizes) == 1:
            return _size(next(iter(sizes.values())))
        if sizes:
            return None
    return None


def is_known_dense(grid: TableGrid, row: GridRow) -> bool:
    """Whether the model is of a family that has no experts."""
    return bool(DENSE_MODEL.search(f"{' '.join(cell.text for cell in row.cells)} {grid.words}"))


def _size(match: re.Match[str]) -> Number:
    decimals = len(match[1].partition(".")[2])
    return Number(float(match[1]), decimals).scaled(SUFFIXES[match[2][0].lower()])


def paired_column(grid: TableGrid, column: GridColumn, role: str) -> GridColumn | None:
    """The column of another quantity that stands for the same thing: by its head, else the only one."""
    others = grid.with_role(role)
    if len(others) == 1 and len(grid.with_role(column.role or "")) == 1:
        return others[0]
    rest = QUANTITY_WORDS.sub("", column.head.lower())
    same = [other for other in others if QUANTITY_WORDS.sub("", other.head.lower()) == rest]
    return same[0] if len(same) == 1 else None


def data_parallel(row: GridRow) -> float | None:
    """Copies of the model: devices over what each copy is spread over; None where the row does not say."""
    if stated := value_of(row, "data_parallel"):
        return stated
    tensor, pipeline = value_of(row, "tensor_parallel"), value_of(row, "pipeline_parallel")
    if not row.devices or not tensor or not pipeline:
        return None
    return row.devices / (tensor * pipeline * (value_of(row, "context_parallel") or 1.0))


def language_rows(grid: TableGrid) -> Iterator[GridRow]:
    """The rows of a table that speaks of tokens, operations or global batches."""
    roles = {column.role for column in grid.columns}
    if roles & {"mfu", "tflops", "global_batch", "global_batch_tokens", "sequence_length"} or TOKENS.search(
        " ".join(simplify_head(column.head) for column in grid.columns)
    ):
        yield from grid.rows


RECOMPUTED = 4 / 3
# A name rounds: `7B` stands for 6.7 to 8.5 thousand million, `1B` for up to half as many again.
ROUNDED_NAME = {1: (0.85, 1.25), 2: (0.85, 1.15), 3: (0.95, 1.05)}
SMALLEST_ROUNDED = (2e9, (0.8, 1.6))
# Without token embeddings, which some leave out: a third of a small model, little of a large one.
WITHOUT_EMBEDDINGS = ((1e9, 0.65), (5e9, 0.8), (float("inf"), 0.9))
# Width and depth follow from the size only roughly: models are 60 to 180 times as wide as deep.
WIDTH_OVER_DEPTH = 128
SHAPE = (0.55, 1.8)
# Where the length is not told, attention may add this much.
UNTOLD_ATTENTION = 0.5


@dataclass(frozen=True)
class Convention:
    """A way to count, the least and most operations a token that it allows, and a likely number between."""

    name: str
    low: float
    high: float
    likely: float

    def allows(self, operations: float) -> bool:
        return self.low <= operations <= self.high


def conventions(
    parameters: Number, is_exact: bool, length: float | None, layers: float | None, width: float | None
) -> list[Convention]:
    """All ways to count, the usual ones first."""
    least, most = _sizes(parameters, is_exact)
    attention_low, attention_high = _attention(parameters.value, length, layers, width)
    embedded = next(share for size, share in WITHOUT_EMBEDDINGS if parameters.value < size)
    usual_low, usual_high = 6 * least * 0.98, 6 * most * (1 + attention_high) * 1.02
    likely = 6 * parameters.value * (1 + (attention_low + attention_high) / 3)
    recomputed = RECOMPUTED * usual_low * (1 + attention_low), RECOMPUTED * usual_high, RECOMPUTED * likely
    return [
        Convention("6 N, with or without attention", usual_low, usual_high, likely),
        Convention("6 N without embeddings", 6 * least * embedded, usual_low, likely),
        Convention("8 N, with recomputation", *recomputed),
    ]


def _sizes(parameters: Number, is_exact: bool) -> tuple[float, float]:
    if is_exact:
        return parameters.low, parameters.high
    digits = len(f"{parameters.value:.3g}".replace(".", "").partition("e")[0].rstrip("0")) or 1
    low, high = ROUNDED_NAME[min(3, digits)]
    if digits == 1 and parameters.value < SMALLEST_ROUNDED[0]:
        low, high = SMALLEST_ROUNDED[1]
    return parameters.value * low, parameters.value * high


def _attention(
    size: float, length: float | None, layers: float | None, width: float | None
) -> tuple[float, float]:
    """What attention adds to 6 N, as a share of it: from causal to full."""
    if length is None:
        return 0.0, UNTOLD_ATTENTION
    if layers and width:
        full = 2 * layers * width * length / size
        return full / 2, full
    rough = length / (6 * (size * WIDTH_OVER_DEPTH / 12) ** (1 / 3))
    return 0.5 * SHAPE[0] * rough, SHAPE[1] * rough


RESNET50 = re.compile(r"resnet[-_ ]?v?(?:1\.5)?[-_ ]?50|\brn50\b", re.I)
ANOTHER_MODEL = re.compile(
    r"bert|gpt|vgg|inception|mobilenet|alexnet|resnet[-_ ]?(?:18|34|101|152)|resnext|efficientnet|densenet"
    r"|\bssd\b|rcnn|retinanet|yolo|face|transformer|\bvit\b|swin|unet|segment|detect|\btsm\b|\by1\b|video",
    re.I,
)
IMAGENET_IMAGES = 1_281_167
# Forward and backward pass of ResNet-50 v1.5 over one image of 224 × 224: 3 × 2 × 4.09 G multiply-adds.
FLOP_AN_IMAGE = 24.5e9


def is_of_resnet50(grid: TableGrid) -> bool:
    """Whether the headings, the sentences above or the heads name ResNet-50 and no other model."""
    words = " ".join((grid.words, *(column.head for column in grid.columns)))
    return bool(RESNET50.search(words)) and not ANOTHER_MODEL.search(words)


def names_another_model(row: GridRow) -> bool:
    return bool(ANOTHER_MODEL.search(" ".join(cell.text for cell in row.cells)))
