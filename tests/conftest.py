from hypothesis import settings

# The machines that run the tests are noisy: how long an example takes says nothing about the code.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
