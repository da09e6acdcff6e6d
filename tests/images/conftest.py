"""The codecs that are there."""

from __future__ import annotations

import pytest

from trainmark.workloads.images import jpeg


@pytest.fixture(params=jpeg.CODECS)
def codec(request):
    try:
        return jpeg.codec(request.param)
    except jpeg.CodecMissing as error:
        pytest.skip(f"{request.param}: {error}")
