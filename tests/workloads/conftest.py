from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """On cores shared with other work, threads that wait for each other are slower than one."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install 'trainmark[pytorch]'")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
