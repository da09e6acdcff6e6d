"""What a report says and shows of its runs.

Sentences: of a run, how long it took, how many epochs, how accurate and how fast it was; of the report, the
rule by which it measured. Log excerpts, commands, and results as a script printed them:

logs/1n8g/rn50_b128_fp32_4.log {4: 2788.99}
{'rn50': {'1n8g': {'average_speed': 2774.29, 'median_speed': 2773.82, 'speedup': 7.5}}}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from trainmark.audit.report import CodeBlock, Report
from trainmark.audit.terms import SHORT_TOPOLOGY, Number, parse_number

LONGEST_LINE = 2000
HAS_DIGIT = re.compile(r"\d")
SENTENCE = re.compile(r"[。;；!？]|\.(?=\s)")
# ASCII word borders: a Chinese character may follow a unit.
NUMBER = r"(?<![\d.,])(\d[\d,]{0,14}(?:\.\d{1,6})?)"
SECONDS = re.compile(NUMBER + r" ?(?:秒|(?:s|secs?|seconds)\b)", re.A)
EPOCHS = re.compile(r"(?<![\d.,])(\d{1,5}) ?个? ?(?:epochs?\b|轮)", re.I | re.A)
PERCENT = re.compile(r"(?<![\d.,~-])(\d{1,2}\.\d{1,4}) ?%")
RATE = re.compile(
    NUMBER + r" ?(?:imgs?|images?|samples?|张) ?(?:/|per) ?(s|sec|second|ms|秒)(?![a-z])", re.I | re.A
)
SPEAKS_OF_ACCURACY = re.compile(r"精度|准确率|accuracy|top-?_?1", re.I)
# What another party claims, or what has to be reached, is no result of this report.
NOT_MEASURED = re.compile(r"要求|目标|公布|官方|target|requir|published|official|reported by", re.I)


@dataclass(frozen=True)
class Statement:
    """One sentence about one run; None where it does not say, or says two things."""

    line: int
    seconds: Number | None
    epochs: int | None
    accuracy: Number | None
    rate: Number | None
    rate_unit: str | None

    @property
    def says_something(self) -> bool:
        return any((self.seconds, self.epochs, self.accuracy, self.rate))


def statements(report: Report) -> list[Statement]:
    return report.cached("statements", _all_statements)


def _all_statements(report: Report) -> Iterator[Statement]:
    for passage in report.prose:
        if len(passage.text) > LONGEST_LINE:
            continue
        for sentence in SENTENCE.split(passage.text):
            statement = _statement(passage.line, sentence) if HAS_DIGIT.search(sentence) else None
            if statement and statement.says_something and not NOT_MEASURED.search(sentence):
                yield statement


def _statement(line: int, sentence: str) -> Statement:
    epochs = _only_text(EPOCHS.findall(sentence))
    accuracy = _only_text(PERCENT.findall(sentence)) if SPEAKS_OF_ACCURACY.search(sentence) else None
    rates = RATE.findall(sentence)
    return Statement(
        line=line,
        seconds=parse_number(_only_text(SECONDS.findall(sentence)) or ""),
        epochs=int(epochs) if epochs else None,
        accuracy=parse_number(accuracy or ""),
        rate=parse_number(rates[0][0]) if len(rates) == 1 else None,
        rate_unit=rates[0][1].lower() if len(rates) == 1 else None,
    )


def _only_text(texts: list[str]) -> str | None:
    return texts[0] if len(set(texts)) == 1 else None


ITERATION = r" ?(?:个 ?)?(?:iter(?:ation)?s?|steps?|batch(?:es)?|步)(?![a-z])"
SKIPPED_STEPS = re.compile(
    r"(?:排除|去掉|丢弃|跳过|忽略|(?:skip|ignor|discard|exclud|drop)\w*)[^\d,。]{0,20}?(\d{1,6})" + ITERATION,
    re.I,
)
TOTAL_STEPS = re.compile(
    r"(?:取[^,。]{0,24}?前|(?:over|of|use[sd]?|take[sn]?|runs?) (?:the )?first) ?(\d{1,6})" + ITERATION, re.I
)
LAST_STEPS = re.compile(r"(?:后面?|last|next|following) ?(\d{1,6})" + ITERATION, re.I)
REPEATS = re.compile(
    r"(?:取|进行了?|做|测试|重复|运行) ?(\d{1,3}) ?次"
    r"|(?:median|mean|average) of (?:the )?(\d{1,3})(?: \w+)? (?:runs?|trials?|repeats?|repetitions?)"
    r"|(?:repeated|run|ran) (\d{1,3}) times"
    r"|(?<![\d.])(\d{1,3}) (?:runs|repeats|repetitions|trials) (?:each|of each|per)",
    re.I,
)
USED_OPTIONS = re.compile(r"--warmup_batches[ =](\d{1,6})\s{1,4}--train_batches[ =](\d{1,6})")


@dataclass(frozen=True)
class MeasuringRule:
    """A window of iterations: how many are run, and how many of them at the end are measured."""

    line: int
    total: int | None
    measured: int | None


def stated_rules(report: Report) -> Iterator[MeasuringRule]:
    """What sentences say: `排除前100个iter取后100个iter`, `of the first 150 iterations the last 100`."""
    for passage in report.prose:
        text = passage.text[:LONGEST_LINE]
        skipped, in_all, tail = SKIPPED_STEPS.search(text), TOTAL_STEPS.search(text), LAST_STEPS.search(text)
        measured = int(tail[1]) if tail else None
        if skipped and tail:
            yield MeasuringRule(passage.line, int(skipped[1]) + int(tail[1]), measured)
        elif in_all and not skipped:
            yield MeasuringRule(passage.line, int(in_all[1]), measured)


def used_rules(report: Report) -> Iterator[MeasuringRule]:
    """What the commands of the extraction say."""
    for block in report.code:
        for number, line in block.numbered():
            if match := USED_OPTIONS.search(line[: 2 * LONGEST_LINE]):
                yield MeasuringRule(number, int(match[2]), int(match[2]) - int(match[1]))


def stated_repeats(report: Report) -> Iterator[tuple[int, int]]:
    """Line and number of runs, wherever the text gives one."""
    for passage in report.prose:
        for match in REPEATS.finditer(passage.text[:LONGEST_LINE]):
            yield passage.line, int(next(filter(None, match.groups())))


LONGEST_LOG_LINE = 20_000
TIME_STAMP = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)")
STEP = re.compile(r"\b(?:iteration|iter|step|batch)[:=]? {0,2}(\d{1,9})\b", re.I)
LOGGED_RATE = re.compile(
    r"(?:total_ips|imgs_per_sec|samples/s(?:ec)?|images/sec|ips|throughput) ?[:=] ?(\d{1,12}(?:\.\d{1,12})?)",
    re.I,
)
TOP1 = re.compile(r"\btop_?-?1[:=]? {0,2}(\d{1,3}\.\d{1,9})", re.I)
SETTINGS = {
    "world_size": re.compile(r"\bworld_?size ?[:=] ?(\d{1,6})\b"),
    "nodes": re.compile(r"--(?:nnodes|num_nodes|nodes)[ =](\d{1,5})\b"),
    "devices_per_node": re.compile(r"--(?:nproc_per_node|gpu_num_per_node)[ =](\d{1,4})\b"),
    "batch": re.compile(r"(?: -b |--batch[-_]size(?:[-_]per[-_]device)?[ =]|\bbatch_size : )(\d{1,7})\b"),
    "momentum": re.compile(r"(?:--mom(?:entum)?[ =]|\bmomentum ?[:=] ?)(\d?\.\d{1,9})\b"),
    "weight_decay": re.compile(r"(?:--wd[ =]|weight_decay ?[:=] ?)([\d.]{1,20}(?:e-?\d{1,3})?)"),
    "steps": re.compile(r"(?:--prof[ =]|\bprof : )(\d{1,9})\b"),
}


@dataclass(frozen=True)
class ShownSetting:
    """A value that a command or a log states, and where."""

    value: str
    line: int


@dataclass(frozen=True)
class LoggedStep:
    """One logged step."""

    line: int
    number: int
    stamp: str | None
    rate: float | None
    top1: float | None


@dataclass(frozen=True)
class ShownLog:
    """A block that shows a command, its log, or both; `topology` is that of the path it writes to."""

    block: CodeBlock
    topology: tuple[int, int] | None
    settings: dict[str, tuple[ShownSetting, ...]]
    steps: tuple[LoggedStep, ...]
    stamps: tuple[str, ...]

    def first(self, name: str) -> ShownSetting | None:
        settings = self.settings.get(name)
        return settings[0] if settings else None

    @property
    def devices(self) -> int | None:
        return self.topology[0] * self.topology[1] if self.topology else None


def shown_logs(report: Report) -> list[ShownLog]:
    return report.cached("shown logs", _all_shown_logs)


def _all_shown_logs(report: Report) -> Iterator[ShownLog]:
    for block in report.code:
        log = _shown_log(block)
        if log.settings or log.steps:
            yield log


def stamp_seconds(stamp: str) -> float:
    """A time stamp as seconds, to take differences of."""
    return datetime.fromisoformat(_iso(stamp)).timestamp()


def _iso(stamp: str) -> str:
    whole, _, fraction = stamp.replace(",", ".").partition(".")
    return f"{whole}.{fraction:0<6}" if fraction else whole


def _shown_log(block: CodeBlock) -> ShownLog:
    settings: dict[str, list[ShownSetting]] = {}
    steps: list[LoggedStep] = []
    stamps: list[str] = []
    topologies: set[tuple[int, int]] = set()
    for number, line in block.numbered():
        if len(line) > LONGEST_LOG_LINE:
            continue
        for name, pattern in SETTINGS.items():
            if match := pattern.search(line):
                settings.setdefault(name, []).append(ShownSetting(match[1], number))
        topologies |= {(int(nodes), int(devices)) for nodes, devices in SHORT_TOPOLOGY.findall(line)}
        stamp = TIME_STAMP.search(line)
        if stamp:
            stamps.append(stamp[1])
        step, rate, top1 = STEP.search(line), LOGGED_RATE.search(line), TOP1.search(line)
        if step and (rate or top1):
            steps.append(
                LoggedStep(
                    number,
                    int(step[1]),
                    _valid(stamp[1]) if stamp else None,
                    float(rate[1]) if rate else None,
                    float(top1[1]) if top1 else None,
                )
            )
    return ShownLog(
        block,
        topologies.pop() if len(topologies) == 1 else None,
        {name: tuple(values) for name, values in settings.items()},
        tuple(steps),
        tuple(stamps),
    )


def _valid(stamp: str) -> str | None:
    try:
        stamp_seconds(stamp)
    except (ValueError, OverflowError, OSError):
        return None
    return stamp


LONGEST_PRINTED_LINE = 4000
FILE_LINE = re.compile(r"\s*(\S{0,400}?)(\d{1,4}n\d{1,3}g)/([^\s/]{1,200})\s+\{([^{}]{1,2000})\}\s*$")
RUN = re.compile(r"['\"]?(\d{1,6})['\"]?: ?(\d{1,12}(?:\.\d{1,12})?)")
TOPOLOGY = re.compile(r"\d{1,4}n\d{1,3}g")
ENTRY = re.compile(
    r"['\"](average_speed|median_speed|speedup|batch_size_per_device)['\"]: ?(\d{1,12})(?:\.(\d{1,12}))?"
    r"|['\"]([\w.-]{1,60})['\"]: ?\{"
)
PRECISION_IN_NAME = re.compile(r"_(fp32|fp16|amp|tf32|bf16)(?=[_.])")


@dataclass(frozen=True)
class RunLine:
    """One line of runs by file: all runs read so far, the last being that of this file.

    `folder` is the path above the topology: a run of another day or batch lies in another.
    """

    line: int
    folder: str
    topology: str
    file: str
    runs: dict[int, Number]


@dataclass
class PrintedCase:
    """The figures of one topology in the dictionary, and the runs listed for it."""

    model: str
    topology: str
    line: int
    figures: dict[str, tuple[Number, int]] = field(default_factory=dict)
    runs: dict[int, Number] = field(default_factory=dict)

    def figure(self, name: str) -> Number | None:
        entry = self.figures.get(name)
        return entry[0] if entry else None


@dataclass(frozen=True)
class PrintedResult:
    """All that one block of output prints."""

    lines: tuple[RunLine, ...]
    cases: tuple[PrintedCase, ...]


def printed_results(report: Report) -> list[PrintedResult]:
    return report.cached("printed results", _all_printed_results)


def _all_printed_results(report: Report) -> Iterator[PrintedResult]:
    for block in report.code:
        lines = tuple(_run_lines(block))
        cases = tuple(_cases(block))
        listed: dict[str, dict[str, dict[int, Number]]] = {}
        for line in lines:
            listed.setdefault(line.topology, {}).setdefault(line.folder, {}).update(line.runs)
        for case in cases:
            folders = list(listed.get(case.topology, {}).values())
            case.runs = folders[0] if len(folders) == 1 else {}
        if lines or cases:
            yield PrintedResult(lines, cases)


def _run_lines(block: CodeBlock) -> Iterator[RunLine]:
    for number, line in block.numbered():
        if len(line) > LONGEST_PRINTED_LINE or "{" not in line or not (match := FILE_LINE.match(line)):
            continue
        runs = {int(key): _number(value) for key, value in RUN.findall(match[4])}
        if runs:
            yield RunLine(number, match[1], match[2], match[3], runs)


def _cases(block: CodeBlock) -> Iterator[PrintedCase]:
    model, case = "", None
    for number, line in block.numbered():
        if len(line) > LONGEST_PRINTED_LINE or FILE_LINE.match(line):
            continue
        for name, whole, decimals, key in ENTRY.findall(line):
            if key and TOPOLOGY.fullmatch(key):
                if case:
                    yield case
                case = PrintedCase(model, key, number)
            elif key:
                model = key
            elif case:
                case.figures[name] = (_number(f"{whole}.{decimals}" if decimals else whole), number)
    if case:
        yield case


def _number(text: str) -> Number:
    """Two decimals at least: Python prints 7.50 as 7.5."""
    return Number(float(text), max(2, len(text.partition(".")[2])))
