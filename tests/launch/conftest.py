import pytest

from trainmark.launch.launcher import LocalLauncher


@pytest.fixture
def launcher():
    return LocalLauncher()
