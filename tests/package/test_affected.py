"""`tools.affected` names the tests that a change can reach."""

from tools.affected import SOURCE, TESTS, affected

PACKAGE = SOURCE / "trainmark"


def names(*changed):
    return [str(file.relative_to(TESTS)) for file in affected(changed)]


def test_a_change_names_what_imports_it_or_calls_its_command_and_not_the_rest():
    server = names(PACKAGE / "server" / "access" / "tokens.py")
    assert "server/test_server_access.py" in server
    assert not [name for name in server if name.startswith(("measure/", "workloads/"))]
    assert "cli/test_cli_reading.py" in names(PACKAGE / "cli" / "list.py")


def test_a_helper_of_tests_and_a_data_file_name_those_that_use_them():
    assert "faults/test_rank_faults.py" in names(TESTS / "faults" / "conftest.py")
    assert "suite/test_left_open.py" in names(TESTS / "conftest.py")
    assert "cluster/test_every_launcher.py" in names(TESTS / "cluster" / "hosts.py")
