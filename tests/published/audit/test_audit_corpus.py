"""Precision and recall over published reports whose contradictions are known."""

import json
import re
import subprocess
import sys

import pytest
from report_texts import SEEDS

CORPUS = SEEDS.parent / "corpus" / "reports"
# Contradictions that the labels lack, each proved from its page: file, line, what is printed, what follows.
PROVED = [
    ("dle__TensorFlow2_Recommendation_SIM_README.md", 1181, "1.187", "1.122", "1444729.52 / 1287305.05"),
    ("dle__TensorFlow2_Recommendation_SIM_README.md", 1249, "1.384", "1.015", "727077.63 / 716355.19"),
]


@pytest.mark.skipif(not (CORPUS / "score.py").is_file(), reason="no labelled reports beside the checkout")
def test_the_audit_is_right_about_the_labelled_reports(tmp_path):
    labels = json.loads((CORPUS / "LABELS.json").read_text(encoding="utf-8"))
    for file, line, claimed, derived, why in PROVED:
        known = labels[file]["contradictions"]
        if not any(one["line"] == line for one in known):
            known.append({"line": line, "claimed": claimed, "derived": derived, "why": why})
    mended = tmp_path / "labels.json"
    mended.write_text(json.dumps(labels), encoding="utf-8")
    command = [
        sys.executable,
        str(CORPUS / "score.py"),
        f"{sys.executable} -m trainmark",
        str(CORPUS),
        str(mended),
    ]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    measured = re.search(r"precision ([\d.]+) recall ([\d.]+)", printed)
    assert measured, printed
    precision, recall = map(float, measured.groups())
    assert precision >= 0.95, printed
    assert recall >= 0.8, printed
