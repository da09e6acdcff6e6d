import pytest


@pytest.fixture(scope="module")
def small_pages():
    """MindSpore's pages of 32 MiB and FFCV's of 8 would make every test read that much."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trainmark.data.formats.mindrecord.HEADER", 16 << 10)
        patch.setattr("trainmark.data.formats.mindrecord.PAGE", 32 << 10)
        patch.setattr("trainmark.data.formats.beton.PAGE", 16 << 10)
        yield
