"""Where a run was made is kept with it and read again when it goes on."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from trainmark.errors import UserError
from trainmark.launch.choice import Choice, from_dict, to_dict
from trainmark.launch.node import Node

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
    Choice,
    launcher=some.sampled_from(["local", "ssh", "slurm", "mpi", "ray"]),
    nodes=some.lists(nodes, max_size=3).map(tuple),
    count=some.none() | some.integers(1, 99),
    interface=texts,
    passed=some.lists(names).map(tuple),
    port=some.none() | some.integers(1, 65535),
    options=some.lists(some.text()).map(tuple),
    ssh_config=texts,
    ray_address=texts,
    ray_python=texts,
    exclude_bad_nodes=some.booleans(),
)


@given(choices)
def test_a_choice_comes_back_from_a_run_s_folder_as_it_was(choice):
    assert from_dict(json.loads(json.dumps(to_dict(choice)))) == choice


@pytest.mark.parametrize(
    "kept", [{"launcher": "ssh", "cloud": "far"}, {"nodes": [5]}, {"nodes": [{"adress": "a"}]}, {"nodes": 5}]
)
def test_what_another_version_wrote_is_refused_with_a_sentence(kept):
    with pytest.raises(UserError, match="not written as this version does"):
        from_dict(kept)


def test_what_was_kept_by_hand_cannot_name_what_is_no_host():
    with pytest.raises(UserError, match="cannot name a host"):
        from_dict({"nodes": [{"name": "-oProxyCommand=touch x"}]})


def test_the_number_of_nodes_is_asked_for_only_where_nobody_said_it():
    assert Choice(count=2).for_nodes(4).count == 2
    assert Choice().for_nodes(4).count == 4
