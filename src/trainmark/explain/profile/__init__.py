"""What a profiler recorded of one rank: device and host spans, and the steps they belong to."""
