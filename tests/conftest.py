import os

from hypothesis import settings

# The machines that run the tests are noisy: how long an example takes says nothing about the code. In CI
# the examples are the same each time; elsewhere they go on searching.
settings.register_profile("unhurried", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("unhurried")
