"""The figures of docs/forecast.md are those that the command gives."""

from pathlib import Path

from trainmark.forecast.validation import (
    KNOWN_PROGRAM,
    by_source,
    fit_published,
    summary,
    validate,
    validate_unseen,
    without_outliers,
)
from trainmark.logs.ledger import load

PAGE = (Path(__file__).parents[2] / "docs" / "forecast.md").read_text(encoding="utf-8")


def table_of_errors():
    checks = validate(load())
    rows = {f"`{source}`": statistics for source, statistics in by_source(checks).items()}
    rows["**all series**"] = summary(checks)
    rows["without odd series"] = summary(without_outliers(checks))
    rows["with the framework's other cases known"] = summary(validate(load(), KNOWN_PROGRAM))
    rows["added after the model was chosen"] = summary(validate_unseen(load()))
    lines = [
        "| series | rows | median error | 90th percentile | covered by 80 % |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, statistics in rows.items():
        errors = f"{100 * statistics.median:.1f} % | {100 * statistics.p90:.1f} %"
        lines.append(f"| {name} | {statistics.rows} | {errors} | {100 * statistics.coverage:.0f} % |")
    return "\n".join(lines)


def test_the_table_of_errors_is_what_validation_gives():
    assert table_of_errors() in PAGE


def test_the_coefficients_are_those_that_all_series_give():
    assert ", ".join(f"{value:.2f}" for value in fit_published(load()).coefficients) in PAGE
