"""Nodes that fail during a run: counted, left out where the user wants that, and what can still run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from trainmark.runner.preflight.cluster import Cluster
from trainmark.suite.model import Case

# Once may be chance; a node that fails again would cost every trial to come.
FAILURES_TO_LEAVE_OUT = 2


class AllocationGoneError(RuntimeError):
    """No node can be reached any more: a scheduler took them all back."""


class NodeFailures:
    def __init__(self, cluster: Cluster | None) -> None:
        self._cluster = cluster
        self._failures: Counter[str] = Counter()
        self._noted_slugs: set[str] = set()

    def lost(self, node: str | None, wanted: int, note: Callable[[str], None]) -> bool:
        """Whether the trial is worth another try: without the node there are still enough others."""
        # An allocation that was taken back says nothing of its nodes.
        if self._cluster is None or node is None or self._cluster.launcher.gone():
            return False
        self._failures[node] += 1
        if not self._cluster.choice.exclude_bad_nodes or node not in self._cluster.node_names:
            return False
        if self._failures[node] < FAILURES_TO_LEAVE_OUT:
            # A second try tells chance from a broken node.
            return True
        self._cluster.launcher.left_out.add(node)
        left = self._cluster.node_names
        note(f"{node} failed {FAILURES_TO_LEAVE_OUT} times and is left out; {len(left)} nodes are left")
        return len(left) >= wanted

    def too_few_for(self, case: Case, note: Callable[[str], None]) -> bool:
        """Whether the case has lost the nodes it needs, said once."""
        if self._cluster is None or not self._cluster.launcher.left_out:
            return False
        left, needed = len(self._cluster.node_names), case.topology.nodes
        if needed <= left:
            return False
        if case.slug not in self._noted_slugs:
            self._noted_slugs.add(case.slug)
            out = ", ".join(sorted(self._cluster.launcher.left_out))
            note(f"skipped {case.slug}: needs {needed} nodes; {left} are left without {out}")
        return True

    def require_allocation(self) -> None:
        if self._cluster is not None and (gone := self._cluster.launcher.gone()):
            raise AllocationGoneError(gone)
