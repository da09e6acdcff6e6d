from __future__ import annotations

import pytest

from trainmark.machine.software import InstalledLibrary, read_libraries

CUDNN_HEADER = "#define CUDNN_MAJOR 7\n#define CUDNN_MINOR 6\n#define CUDNN_PATCHLEVEL 5\n"


@pytest.fixture
def no_programs(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


def test_the_wheels_own_library_comes_before_the_systems(plant, no_programs):
    root = plant(
        {"usr/lib/x86_64-linux-gnu/libcudnn.so.8.9.7": "", "usr/lib/x86_64-linux-gnu/libcudnn.so.8": ""}
    )
    libraries = read_libraries({"nvidia-cudnn-cu12": "9.1.0.70"}, root, {}).cudnn
    assert libraries is not None
    assert [library.version for library in libraries] == ["9.1.0.70", "8.9.7"]


def test_a_library_and_its_header_are_one_installation(plant, no_programs):
    root = plant({"usr/lib64/libcudnn.so.7.6.5": "", "usr/include/cudnn_version.h": CUDNN_HEADER})
    assert read_libraries({}, root, {}).cudnn == (InstalledLibrary("7.6.5", f"{root}/usr/lib64"),)


def test_a_header_tells_the_version_where_only_that_is_installed(plant, no_programs):
    root = plant({"usr/include/cudnn_version.h": CUDNN_HEADER})
    assert read_libraries({}, root, {}).cudnn == (InstalledLibrary("7.6.5", "/usr/include/cudnn_version.h"),)


def test_a_library_on_the_search_path_is_found(plant, no_programs):
    root = plant({"opt/nccl/libnccl.so.2.5.6": ""})
    libraries = read_libraries({}, root, {"LD_LIBRARY_PATH": f"{root}/opt/nccl:"}).nccl
    assert libraries == (InstalledLibrary("2.5.6", f"{root}/opt/nccl"),)


def test_a_folder_named_in_the_linkers_configuration_is_searched(plant, no_programs):
    root = plant({"etc/ld.so.conf.d/nccl.conf": "# ours\n/opt/nccl\n", "opt/nccl/libnccl.so.2.5.6": ""})
    assert read_libraries({}, root, {}).nccl == (InstalledLibrary("2.5.6", f"{root}/opt/nccl"),)


@pytest.mark.parametrize(
    ("file", "text", "version"),
    [
        ("version.json", '{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}}', "12.4.1"),
        ("version.txt", "CUDA Version 10.2.89\n", "10.2.89"),
    ],
)
def test_a_toolkit_without_a_compiler_on_the_path_is_found_in_its_folder(
    plant, no_programs, file, text, version
):
    root = plant({f"usr/local/cuda-x/{file}": "", f"usr/local/cuda/{file}": text})
    assert read_libraries({}, root, {}).cuda_toolkit == (InstalledLibrary(version, "/usr/local/cuda"),)


@pytest.mark.parametrize(
    ("banner", "library"),
    [
        ("mpirun (Open MPI) 4.0.3", InstalledLibrary("4.0.3", "Open MPI")),
        ("mpirun.real (OpenRTE) 3.1.4", InstalledLibrary("3.1.4", "Open MPI")),
        ("HYDRA build details:\n    Version:            4.1\n", InstalledLibrary("4.1", "MPICH")),
        (
            "Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 2023",
            InstalledLibrary("2021.9", "Intel MPI"),
        ),
    ],
)
def test_mpi_is_told_by_its_banner(plant, no_programs, banner, library):
    program = no_programs / "mpirun"
    program.write_text(f"#!/bin/sh\necho '{banner}'\n")
    program.chmod(0o755)
    assert read_libraries({}, plant({}), {}).mpi == (library,)


def test_what_is_not_installed_is_none(plant, no_programs):
    libraries = read_libraries({}, plant({}), {})
    assert (libraries.cuda_toolkit, libraries.cudnn, libraries.nccl, libraries.mpi) == (
        None,
        None,
        None,
        None,
    )
