"""Where a run was made is kept with it and read again when it goes on."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from trainmark.base.errors import UserError
from trainmark.launch import options
from trainmark.launch.nodes import Node
from trainmark.launch.options import LaunchOptions, decode_options, encode_options

CARRIER_OPTIONS = [option.name for option in options.carrier_options()]
names = some.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)
texts = some.none() | some.text(min_size=1)
nodes = some.builds(
    Node,
    name=names,
    slots=some.none() | some.integers(1, 1024),
    devices=some.none() | some.lists(some.integers(0, 7)).map(tuple),
    scratch=texts,
    labels=some.lists(names).map(tuple),
)
choices = some.builds(
    LaunchOptions,
    launcher=some.sampled_from(["local", "ssh", "slurm", "mpi", "ray"]),
    nodes=some.lists(nodes, max_size=3).map(tuple),
    count=some.none() | some.integers(1, 99),
    interface=texts,
    passed=some.lists(names).map(tuple),
    port=some.none() | some.integers(1, 65535),
    options=some.lists(some.text()).map(tuple),
    own=some.dictionaries(some.sampled_from(CARRIER_OPTIONS), some.text(min_size=1)).map(
        lambda given: tuple((name, given[name]) for name in CARRIER_OPTIONS if name in given)
    ),
    exclude_bad_nodes=some.booleans(),
)


def test_a_run_that_goes_on_elsewhere_takes_nothing_over_from_where_it_was():
    stored = LaunchOptions("ssh", (Node("a"),), interface="ib0", exclude_bad_nodes=True)
    there = LaunchOptions("slurm", count=4)
    assert stored.changed_by(there) == there
    assert stored.changed_by(LaunchOptions(interface="eth0")) == LaunchOptions(
        "ssh", (Node("a"),), interface="eth0"
    )


@given(choices)
def test_a_choice_comes_back_from_a_run_s_folder_as_it_was(choice):
    assert decode_options(json.loads(json.dumps(encode_options(choice))), CARRIER_OPTIONS) == choice


@pytest.mark.parametrize(
    "stored",
    [{"launcher": "ssh", "cloud": "far"}, {"nodes": [5]}, {"nodes": [{"adress": "a"}]}, {"nodes": 5}],
)
def test_what_another_version_wrote_is_refused_with_a_sentence(stored):
    with pytest.raises(UserError, match="not written as this version does"):
        decode_options(stored, CARRIER_OPTIONS)


def test_what_was_kept_by_hand_cannot_name_what_is_no_host():
    with pytest.raises(UserError, match="cannot name a host"):
        decode_options({"nodes": [{"name": "-oProxyCommand=touch x"}]}, CARRIER_OPTIONS)


def test_what_version_0_1_0_wrote_is_read():
    old = {"launcher": "ssh", "ssh_config": "/etc/ssh/site", "ray_address": None, "ray_python": None}
    assert decode_options(old, CARRIER_OPTIONS) == LaunchOptions(
        "ssh", own=(("ssh_config", "/etc/ssh/site"),)
    )


def test_a_carriers_option_given_anew_leaves_its_others():
    stored = LaunchOptions("ray", own=(("ray_address", "a:1"), ("ray_python", "python3")))
    changed = stored.changed_by(LaunchOptions(own=(("ray_address", "b:2"),)))
    assert dict(changed.own) == {"ray_address": "b:2", "ray_python": "python3"}


def test_the_number_of_nodes_is_asked_for_only_where_nobody_said_it():
    assert LaunchOptions(count=2).for_nodes(4).count == 2
    assert LaunchOptions().for_nodes(4).count == 4
