"""Any consistent table is silent, in any writing; any wrong speed-up in it is found."""

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings
from report_texts import findings as all_findings

RATES = st.floats(min_value=50, max_value=400)
SHARES = st.lists(st.floats(min_value=0.55, max_value=0.999), min_size=1, max_size=6)
ENGLISH_HEAD, CHINESE_HEAD = ["gpu num", "samples/s", "speedup"], ["卡数", "吞吐(images/sec)", "加速比"]


def findings(text, name="report.md"):
    return [finding for finding in all_findings(text, name) if finding.severity.value != "note"]


def rows_of(rate, shares, decimals):
    """Rows of 1, 2, 4, … devices; speed-ups are of the throughputs as printed."""
    printed = [round(rate, decimals)]
    for power, share in enumerate(shares, 1):
        printed.append(round(max(rate * 2**power * share, printed[-1] * 1.02), decimals))
    return [
        [2**power, value, round(value / printed[0], 2)]
        for power, value in enumerate(printed)
        if value <= printed[0] * 2**power
    ]


def as_markdown(head, rows, decimals, spaced=False):
    lines = [head, ["---"] * 3, *([str(n), f"{v:.{decimals}f}", f"{s:.2f}"] for n, v, s in rows)]
    return ("\n\n" if spaced else "\n").join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def as_csv(head, rows, decimals):
    return "\n".join([",".join(head), *(f"{n},{v:.{decimals}f},{s:.2f}" for n, v, s in rows)]) + "\n"


def as_html(head, rows, decimals):
    cells = [head, *([str(n), f"{v:,.{decimals}f}", f"{s:.2f}"] for n, v, s in rows)]
    return (
        "<table>\n"
        + "\n".join(f"<tr><td>{'</td><td>'.join(line)}</td></tr>" for line in cells)
        + "\n</table>"
    )


@given(RATES, SHARES, st.integers(1, 3), st.sampled_from([ENGLISH_HEAD, CHINESE_HEAD]), st.booleans())
def test_a_consistent_table_gives_no_finding(rate, shares, decimals, head, spaced):
    rows = rows_of(rate, shares, decimals)
    assert findings(as_markdown(head, rows, decimals, spaced)) == []
    assert findings(as_csv(head, rows, decimals), "table.csv") == []
    assert findings(as_html(head, rows, decimals), "page.html") == []


@given(RATES, SHARES, st.integers(1, 3), st.data())
@settings(suppress_health_check=[HealthCheck.filter_too_much])
def test_one_wrong_speedup_is_the_one_finding(rate, shares, decimals, data):
    rows = rows_of(rate, shares, decimals)
    if len(rows) < 2:
        return
    index = data.draw(st.integers(1, len(rows) - 1))
    # More than the digits of the throughputs leave open.
    rows[index][2] += data.draw(st.sampled_from([-1, 1])) * max(0.05, 0.02 * rows[index][2])
    (finding,) = findings(as_markdown(ENGLISH_HEAD, rows, decimals))
    assert (finding.code, finding.where) == ("speedup-mismatch", f"report.md:{index + 3}")


@given(st.lists(st.floats(min_value=100, max_value=9999), min_size=2, max_size=9), st.floats(0.05, 5))
def test_a_printed_average_is_checked_to_its_digits(values, shift):
    runs = [round(value, 2) for value in values]
    average = sum(runs) / len(runs)

    def report(claimed):
        listed = ", ".join(f"{run}: {value}" for run, value in enumerate(runs, 1))
        lines = [
            f"logs/1n1g/rn50_b128_fp32_1.log {{{listed}}}",
            f"{{'rn50': {{'1n1g': {{'average_speed': {claimed}}}}}}}",
        ]
        return "```\n" + "\n".join(lines) + "\n```\n"

    assert findings(report(round(average, 2))) == []
    assert [finding.code for finding in findings(report(round(average + shift, 2)))] == ["average-mismatch"]
