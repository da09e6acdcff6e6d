"""The cluster that these tests run on. What cannot be had on a machine is skipped with the reason."""

from contextlib import ExitStack

import pytest
from host_network import UnavailableError
from hosts import Hosts
from ray_cluster import RayCluster
from slurm_cluster import SlurmCluster


def _or_skip(bed):
    with ExitStack() as until_the_end:
        try:
            started = until_the_end.enter_context(bed())
        except UnavailableError as reason:
            pytest.skip(str(reason))
        yield started


@pytest.fixture(scope="session")
def hosts():
    """Four hosts with an sshd each."""
    yield from _or_skip(Hosts)


@pytest.fixture(scope="session")
def slurm(hosts):
    """Slurm on the four hosts."""
    yield from _or_skip(lambda: SlurmCluster(hosts))


@pytest.fixture(scope="session")
def ray_cluster(hosts):
    """Ray on the first three hosts."""
    yield from _or_skip(lambda: RayCluster(hosts))


@pytest.fixture(autouse=True)
def mended(request):
    """Whatever a test has broken is whole again for the next one, also in a bed that it did not ask for."""
    used = [name for name in ("hosts", "slurm", "ray_cluster") if name in request.fixturenames]
    # Asked for before the test, so that they can be had after it.
    beds = [request.getfixturevalue(name) for name in used]
    for bed in beds:
        bed.heal()
    yield
    for bed in beds:
        bed.heal()
