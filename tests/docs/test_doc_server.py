"""docs/server.md: the systemd unit and the revisions that it shows."""

import re
import shutil
import subprocess
import sys

import pytest
from doc_pages import ROOT, page

PAGE = page("docs/server.md")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")
def test_systemd_has_nothing_to_say_against_the_unit(tmp_path):
    (unit,) = re.findall(r"^```text\n(\[Unit\].*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    file = tmp_path / "trainmark.service"
    file.write_text(unit.replace("/opt/trainmark/bin/trainmark", sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", str(file)], capture_output=True, text=True)
    own = [line for line in done.stderr.splitlines() if "trainmark" in line]
    assert (done.returncode, own) == (0, [])


def test_the_page_lists_every_revision_of_the_database():
    versions = ROOT / "src" / "trainmark" / "server" / "database" / "migrations"
    files = sorted(path.name[1:5] for path in versions.glob("r*.py"))
    assert re.findall(r"^\| `(\d{4})` \|", PAGE, re.MULTILINE) == files
