"""A diagnosis for people: a table, then each line that is not green with its fix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from io import StringIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trainmark.machine.diagnosis import Diagnosis
from trainmark.machine.findings import SEVERITY, FindingMark, NodeFinding

# With more nodes than this, a column for each is not read any more.
COLUMNS = 6
SIGNS = {FindingMark.OK: "✓", FindingMark.WARN: "!", FindingMark.BAD: "✗"}
STYLES = {FindingMark.OK: "green", FindingMark.WARN: "yellow", FindingMark.BAD: "red"}
# A file or a pipe has no width of its own; a table is not to be folded to that of an old terminal.
WIDTH = 160


def print_diagnosis(diagnosis: Diagnosis, console: Console) -> None:
    """Colours and the width of the screen only where there is one."""
    if console.is_terminal:
        _print(diagnosis, console)
    else:
        print(as_text(diagnosis))


def as_text(diagnosis: Diagnosis) -> str:
    written = StringIO()
    _print(diagnosis, Console(highlight=False, width=WIDTH, file=written, color_system=None))
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())


def _print(diagnosis: Diagnosis, console: Console) -> None:
    names = [node.name for node in diagnosis.examined.nodes]
    table = by_node(diagnosis.findings, names) if len(names) <= COLUMNS else by_deviation(diagnosis.findings)
    console.print(table)
    for line in remarks(diagnosis.findings):
        # Not folded: a fix is there to be copied.
        console.print(line, soft_wrap=True)


def by_node(findings: Sequence[NodeFinding], names: Sequence[str]) -> Table:
    table = _table("check", *names)
    for check, check_findings in _by_check(findings):
        cells = [cell([finding for finding in check_findings if finding.node == name]) for name in names]
        table.add_row(check, *cells)
    return table


def by_deviation(findings: Sequence[NodeFinding]) -> Table:
    """Of many nodes only those that are not as they should be."""
    table = _table("check", "nodes in order", "others")
    for check, check_findings in _by_check(findings):
        nodes: dict[str, list[NodeFinding]] = {}
        for finding in check_findings:
            nodes.setdefault(finding.node, []).append(finding)
        deviating = [
            node for node, own in nodes.items() if any(each.mark is not FindingMark.OK for each in own)
        ]
        named = [Text.assemble(f"{plain(node)} ", cell(nodes[node])) for node in deviating]
        in_order = f"{len(nodes) - len(deviating)} of {len(nodes)}"
        table.add_row(check, in_order, Text("; ").join(named))
    return table


def cell(findings: Sequence[NodeFinding]) -> Text:
    """The worst mark of one check on one node, and the values that were found."""
    if not findings:
        return Text("–", style="dim")
    worst = max((finding.mark for finding in findings), key=SEVERITY.__getitem__)
    values = dict.fromkeys(plain(finding.value) for finding in findings)
    return Text(f"{SIGNS[worst]} {', '.join(values)}", style=STYLES[worst])


def remarks(findings: Sequence[NodeFinding]) -> Iterator[Text]:
    """The red ones first, each with its fix, and the count of all."""
    troubled = [finding for finding in findings if finding.mark is not FindingMark.OK]
    yield Text()
    for alike in _alike(sorted(troubled, key=lambda each: -SEVERITY[each.mark])):
        mark, nodes = alike[0].mark, ", ".join(dict.fromkeys(plain(finding.node) for finding in alike))
        yield Text(f"{SIGNS[mark]} {nodes}, {alike[0].check}: {plain(alike[0].what)}", style=STYLES[mark])
        fix = plain(alike[0].fix)
        yield Text("    fix: " + (fix.replace(f"on {alike[0].node}: ", "on each: ", 1) if alike[1:] else fix))
    if troubled:
        yield Text()
    yield Text(counted(findings), style="bold")


def counted(findings: Sequence[NodeFinding]) -> str:
    marks = Counter(finding.mark for finding in findings)
    if marks[FindingMark.OK] == len(findings):
        return "all green"
    return (
        f"{marks[FindingMark.BAD]} red, {marks[FindingMark.WARN]} to look at, {marks[FindingMark.OK]} green"
    )


def plain(text: str) -> str:
    """A node's words, unable to move the cursor or break the line."""
    return "".join(character if character.isprintable() else " " for character in text)


def _alike(findings: Sequence[NodeFinding]) -> Iterator[list[NodeFinding]]:
    """Those that say the same of several nodes, together."""
    groups: dict[tuple[str, str, str], list[NodeFinding]] = {}
    for finding in findings:
        fix = finding.fix.removeprefix(f"on {finding.node}: ")
        groups.setdefault((finding.check, finding.what, fix), []).append(finding)
    yield from groups.values()


def _by_check(findings: Sequence[NodeFinding]) -> Iterator[tuple[str, list[NodeFinding]]]:
    for check in dict.fromkeys(finding.check for finding in findings):
        yield check, [finding for finding in findings if finding.check == check]


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in titles:
        table.add_column(Text(plain(title), style="bold"), overflow="fold")
    return table
