from __future__ import annotations

from trainmark.machine.network import InfinibandPort, Interface, MachineFabric, read_fabric, read_infiniband


def test_an_infiniband_port_is_told_with_its_state_and_rate(plant):
    port = "sys/class/infiniband/mlx5_0/ports/1"
    root = plant(
        {
            "sys/class/infiniband/mlx5_0/hca_type": "MT4115\n",
            "sys/class/infiniband/mlx5_0/fw_ver": "12.28.2006\n",
            f"{port}/state": "4: ACTIVE\n",
            f"{port}/phys_state": "5: LinkUp\n",
            f"{port}/rate": "100 Gb/sec (4X EDR)\n",
            f"{port}/link_layer": "InfiniBand\n",
        }
    )
    assert read_fabric(root).infiniband == (
        InfinibandPort(
            "mlx5_0", "MT4115", "12.28.2006", 1, "ACTIVE", "LinkUp", "100 Gb/sec (4X EDR)", "InfiniBand"
        ),
    )


def test_what_an_infiniband_port_does_not_tell_is_none(plant):
    port = "sys/class/infiniband/mlx5_0/ports/1"
    root = plant({f"{port}/state": "4: ACTIVE\n", f"{port}/rate": "100 Gb/sec (4X EDR)\n"})
    assert read_infiniband(root) == [
        InfinibandPort("mlx5_0", None, None, 1, "ACTIVE", None, "100 Gb/sec (4X EDR)", None)
    ]


def test_a_bridge_without_speed_stands_beside_the_card_and_the_loopback_does_not(plant):
    root = plant(
        {
            "sys/class/net/lo/mtu": "65536\n",
            "sys/class/net/ens1/mtu": "9000\n",
            "sys/class/net/ens1/speed": "100000\n",
            "sys/class/net/ens1/operstate": "up\n",
            "sys/class/net/ens1/device/vendor": "0x15b3\n",
            "sys/class/net/docker0/mtu": "1500\n",
            "sys/class/net/docker0/speed": "-1\n",
            "sys/class/net/docker0/operstate": "down\n",
        }
    )
    assert read_fabric(root).interfaces == (
        Interface("docker0", "down", None, 1500, physical=False),
        Interface("ens1", "up", 100_000, 9000, physical=True),
    )


def test_a_machine_without_any_network_says_none(plant):
    assert read_fabric(plant({})) == MachineFabric(infiniband=None, interfaces=None)
