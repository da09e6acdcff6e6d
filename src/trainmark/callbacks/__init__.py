"""Callbacks that measure a training in a library's own loop; each needs that library and the probe alone."""
