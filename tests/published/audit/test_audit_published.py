"""What the audit finds in the five published reports; docs/audits/ says why each is true."""

import pytest
from report_texts import SEEDS

from trainmark.audit.audit import audit_report
from trainmark.audit.report import read_report

EXPECTED = {
    "000": [
        "placeholder:78", "placeholder:80", "placeholder:84", "placeholder:117", "empty-block:126",
        "missing-repeats:135", "empty-row:137", "placeholder:139", "placeholder:148",
    ],
    "001": [
        "longer-but-less-accurate:99", "missing-environment:108", "missing-repeats:108",
        "row-of-two-runs:108", "time-throughput-mismatch:108", "empty-row:109", "empty-row:110",
    ],
    "002": ["misspelt-in-code:98", "line-number-mismatch:122"],
    "003": [
        "missing-rows:292", "recipe-contradicted:328", "too-few-iterations:328", "partial-dataset:332",
        "rate-contradicts-world-size:334", "network-driver-missing:338", "copied-log:370",
        "recipe-contradicted:372", "too-few-iterations:372", "partial-dataset:376",
        "network-driver-missing:382", "rule-mismatch:410", "script-of-another-model:413",
        "mixed-precision-names:429", "stated-difference:504",
    ],
    "004": ["misspelt-in-code:92", "accuracy-too-soon:155", "missing-repeats:170"],
}  # fmt: skip


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the published reports are not beside the checkout")
@pytest.mark.parametrize("number", EXPECTED)
def test_the_findings_in_a_published_report_are_those_checked_by_hand(number):
    (path,) = SEEDS.glob(f"{number}_*.txt")
    findings = audit_report(read_report(path))
    assert [f"{finding.code}:{finding.where.rpartition(':')[2]}" for finding in findings] == EXPECTED[number]
