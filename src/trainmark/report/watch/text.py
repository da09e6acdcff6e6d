"""A confirmation in the terminal."""

from __future__ import annotations

from trainmark.report.format.label import rate_unit
from trainmark.report.format.number import counted, throughput
from trainmark.sequential.confirmation import Confirmation, Difference
from trainmark.sequential.test import Verdict
from trainmark.visible import one_line


def sentence(confirmation: Confirmation) -> str:
    """Return the answer in one sentence, with the size, its interval and what it rests on."""
    judgement, case = confirmation.judgement, confirmation.case
    sides = f"{confirmation.after} against {confirmation.before}"
    certainty = f"after {counted(judgement.pairs, 'pair')}, wrong with probability ≤ {judgement.error:.2g}"
    share = f"{confirmation.matters:.2%}".replace(".00", "").replace("%", " %")
    size = ratio(confirmation)
    texts = {
        Verdict.SLOWER: f"{case} is slower by more than {share}: {size}, {sides}, {certainty}.",
        Verdict.FASTER: f"{case} is faster by more than {share}: {size}, {sides}, {certainty}.",
        Verdict.SAME: f"{case} differs by less than {share}: {size}, {sides}, {certainty}.",
        Verdict.UNDECIDED: f"{case} is undecided: {one_line(confirmation.reason)} ({size}, {sides}).",
    }
    return texts[confirmation.verdict]


def ratio(confirmation: Confirmation) -> str:
    """`×0.970 [0.962, 0.976]`."""
    judgement = confirmation.judgement
    if not confirmation.pairs:
        return "no pair was measured"
    if judgement.low <= 0:
        return f"×{judgement.ratio:.3f} [no interval yet]"
    return f"×{judgement.ratio:.3f} [{judgement.low:.3f}, {judgement.high:.3f}]"


def lines(confirmation: Confirmation) -> list[str]:
    """Return the answer, the two levels, and the facts that the sides differ in."""
    written = [sentence(confirmation)]
    if levels := confirmation.levels:
        before, after = map(throughput, levels)
        written.append(f"medians: {before} → {after} {rate_unit(confirmation.unit)}")
    remade = [difference for difference in confirmation.differences if difference.remade]
    lost = [difference for difference in confirmation.differences if not difference.remade]
    written += [f"differs: {words(difference)}" for difference in remade]
    written += [f"not put back: {words(difference)}" for difference in lost]
    if confirmation.folder:
        written.append(f"folder: {confirmation.folder}")
    return [one_line(line) for line in written]


def words(difference: Difference) -> str:
    return f"{difference.name} {difference.before or 'n/a'} → {difference.after or 'n/a'}"
