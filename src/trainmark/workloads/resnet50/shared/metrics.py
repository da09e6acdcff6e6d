"""The accuracies of an evaluation: what they are called, and how they follow from the counts of all ranks."""

METRICS = {
    "top1": {"title": "top-1", "better": "higher", "share": True},
    "top5": {"title": "top-5", "better": "higher", "share": True},
}


def evaluation(totals, samples):
    """Return the facts of an evaluation and its metrics, from how many were right, and right within five."""
    top1, top5 = map(round, totals)
    facts = {"correct1": top1, "correct5": top5, "samples": samples}
    return facts, {"top1": top1 / samples, "top5": top5 / samples}
