"""A family with a unit, axes and a metric of its own."""

from trainmark.workloads.declaration import Axis, Comparison, Conformance, Layer, Metric, Workload


def compare(shown):
    wrong = tuple(
        f"rank {rank} counts to {each['sum']}" for rank, each in enumerate(shown) if each["sum"] != 3
    )
    return Comparison(wrong, largest_loss_error=0.0)


WORKLOAD = Workload(
    name="counter",
    title="a loop that counts",
    unit="rows",
    axes=(Axis("width", 8, "width", slug="w{}"), Axis("kind", "plain", "kind", choices=("plain", "fancy"))),
    metrics=(Metric("perplexity", "perplexity", better="lower"),),
    flops=lambda axes: 2.0 * axes["width"],
    layers=lambda axes: [Layer(axes["width"], axes["width"])],
    conformance=Conformance(lambda: ("--batch", "1", "--steps", "3"), compare),
)
