"""A trial taken under the profiler, and changes made to see whether a prediction holds."""
