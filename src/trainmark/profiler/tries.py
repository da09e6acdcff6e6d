"""Tries of the pass that shares are made from, where a busy CPU may disturb one."""

AGREES_WITHIN = 0.03
MOST_TRIES = 4


class Tries:
    """Records of one pass, each with the unprofiled steps before it and after it."""

    def __init__(self):
        self.records, self._beside = [], []

    def begin(self, record, before):
        self.records.append(record)
        self._beside.append([before])

    def end(self, after):
        """Take the steps after the last try, unless they are known."""
        if self._beside and len(self._beside[-1]) == 1:
            self._beside[-1].append(after)

    def is_disturbed(self):
        """Whether another try may agree better: all that there are took their steps otherwise."""
        works = all("error" not in record for record in self.records)
        few = 0 < len(self.records) < MOST_TRIES
        return works and few and self._difference(self._best()) > AGREES_WITHIN

    def best(self):
        """Return the record that agrees best, and the steps beside it."""
        return self.records[self._best()], self._beside[self._best()]

    def _best(self):
        return min(range(len(self.records)), key=self._difference)

    def _difference(self, number):
        seconds, beside = self.records[number].get("step_seconds"), self._beside[number]
        whole = seconds and len(beside) == 2 and all(beside)
        return difference(seconds, *beside) if whole else float("inf")


def difference(seconds, *beside):
    """Return by what share profiled steps differ from those before and from those after them, on average.

    Steps that were as slow only on one side, because something else ran, do not make them agree.
    """
    own = sum(seconds) / len(seconds)
    shares = [abs(own * len(series) / sum(series) - 1) for series in beside]
    return sum(shares) / len(shares)
