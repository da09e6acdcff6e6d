"""Events: the schema, and reading and writing it. Knows nothing else."""

from trainmark.events.schema import (
    SCHEMA_VERSION,
    DeviceSample,
    Event,
    Mark,
    RunEnd,
    RunStart,
    Scope,
    Step,
)

__all__ = ["SCHEMA_VERSION", "DeviceSample", "Event", "Mark", "RunEnd", "RunStart", "Scope", "Step"]
