"""Profiles a few steps inside the measured program; needs the standard library and the framework alone."""
