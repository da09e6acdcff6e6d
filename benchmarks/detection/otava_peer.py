"""Run by the Python of .venv-otava: histories come in as JSON lines, Apache Otava's change points go out.

`compute_change_points` at its own defaults (window 50, p ≤ 0.001, no least magnitude) is what `otava analyze`
runs. The values stay a list: given an array, 0.8.0 leaves its windows out and searches the whole series.
"""

import json
import sys

from otava.analysis import compute_change_points


def main():
    for line in sys.stdin:
        question = json.loads(line)
        options = question["options"]
        looks = []
        for stop in question["stops"]:
            strong, _ = compute_change_points(question["values"][:stop], **options)
            looks.append([int(change.index) for change in strong])
        print(json.dumps(looks), flush=True)


if __name__ == "__main__":
    main()
