import pytest

from trainmark.launch.local import LocalLauncher


@pytest.fixture
def launcher():
    return LocalLauncher()
