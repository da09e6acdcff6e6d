from __future__ import annotations

import json

from click.testing import CliRunner

from trainmark.audit.audit import logs_at
from trainmark.cli.main import trainmark


def log(world_size: int, batch: int, minute: int, steps: int = 40) -> str:
    """A run as DLLogger prints it, of our own making."""
    head = (
        f"DLL 2020-09-15 14:{minute:02d}:00.000000 - PARAMETER batch_size : {batch}"
        f"  world_size : {world_size}  amp : False \n"
    )
    line = (
        "DLL 2020-09-15 14:{m:02d}:{s:02d}.{f:06d} - Epoch: 0 Iteration: {i}"
        "  train.loss : 6.9  train.total_ips : 900.00 img/s\n"
    )
    return head + "".join(line.format(m=minute, s=i, f=i, i=i) for i in range(1, steps + 1))


def findings(*words: str) -> tuple[int, list[str]]:
    result = CliRunner().invoke(trainmark, ["audit", *words, "--json"], standalone_mode=False)
    return result.return_value, [finding["code"] for finding in json.loads(result.output)["findings"]]


def place(folder, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_sound_logs_in_their_places_raise_nothing(tmp_path):
    place(tmp_path, "1n1g/rn50_b128_fp32_1.log", log(1, 128, 10))
    place(tmp_path, "1n8g/rn50_b128_fp32_1.log", log(8, 128, 20))
    assert len(logs_at(tmp_path)) == 2
    assert findings(str(tmp_path)) == (0, [])


def test_a_log_copied_under_another_topology_with_its_world_size_edited_is_an_error(tmp_path):
    place(tmp_path, "2n8g/rn50_b128_fp32_1.log", log(16, 128, 10))
    place(tmp_path, "4n8g/rn50_b128_fp32_1.log", log(32, 128, 10))
    assert findings(str(tmp_path)) == (1, ["edited-copy"])


def test_a_log_that_contradicts_its_folder_is_an_error(tmp_path):
    place(tmp_path, "1n8g/rn50_b128_fp32_1.log", log(4, 128, 10))
    assert findings(str(tmp_path)) == (1, ["world-size-mismatch"])


def test_a_log_too_short_for_the_rule_is_an_error_only_where_the_rule_is_named(tmp_path):
    place(tmp_path, "1n1g/rn50_b128_fp32_1.log", log(1, 128, 10))
    assert findings(str(tmp_path)) == (0, [])
    assert findings(str(tmp_path), "--iterations", "120") == (1, ["too-few-iterations"])
