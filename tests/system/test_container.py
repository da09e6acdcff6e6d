from __future__ import annotations

from trainmark.machine.host import RunningContainer, read_container


def test_outside_of_a_container_there_is_none(plant):
    assert read_container(plant({"proc/1/cgroup": "0::/init.scope\n"}), {}) is None


def test_podman_tells_its_image(plant):
    root = plant({"run/.containerenv": 'engine="podman-4.9"\nimage="docker.io/library/debian:12"\n'})
    assert read_container(root, {}) == RunningContainer("podman", "docker.io/library/debian:12")


def test_docker_does_not_know_its_image_unless_it_is_told(plant):
    root = plant({".dockerenv": ""})
    assert read_container(root, {}) == RunningContainer("docker", None)
    assert read_container(root, {"TRAINMARK_IMAGE": "lab/train:7"}) == RunningContainer(
        "docker", "lab/train:7"
    )


def test_an_ngc_image_is_known_by_its_own_variables(plant):
    variables = {"NVIDIA_PRODUCT_NAME": "PyTorch", "NVIDIA_PYTORCH_VERSION": "20.03"}
    assert read_container(plant({".dockerenv": ""}), variables) == RunningContainer(
        "docker", "NGC PyTorch 20.03"
    )


def test_a_container_without_marks_is_known_by_its_control_group(plant):
    assert read_container(plant({"proc/1/cgroup": "1:cpu:/docker/4f\n"}), {}) == RunningContainer(
        "docker", None
    )
