"""A family whose program is driven by the common loop: linear regression."""

from trainmark.workloads.declaration import Axis, Metric, Workload

WORKLOAD = Workload(
    name="regression",
    title="linear regression",
    unit="points",
    axes=(Axis("features", 4, "features", slug="f{}"),),
    metrics=(Metric("error", "squared error", better="lower"),),
    flops=lambda axes: 6.0 * axes["features"],
)
