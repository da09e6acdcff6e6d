"""Arbitrary text through the parser of reports and every check of the audit."""

import sys

import atheris

with atheris.instrument_imports(include=["trainmark"]):
    from trainmark.audit.audit import audit_report
    from trainmark.audit.report import UnreadableReportError, parse_report

ENDINGS = ("md", "html", "csv", "txt")


def audit(data: bytes) -> None:
    ending = ENDINGS[data[0] % len(ENDINGS)] if data else "md"
    try:
        report = parse_report(data[1:].decode("utf-8", "replace"), f"fuzz.{ending}")
        audit_report(report)
    except UnreadableReportError:
        return


if __name__ == "__main__":
    atheris.Setup(sys.argv, audit)
    atheris.Fuzz()
