"""Untouched trainers of others under `trainmark run`, each beside a stopwatch in the same process.

`python -m benchmarks.strangers --repositories FOLDER` finds each repository in FOLDER/OWNER/NAME, at its
commit in recipes.yaml; nothing is downloaded. A figure is to lie within 2 % of the stopwatch, or to carry a
doubt that names what is wrong, or there is to be a refusal that says which option to give.
"""
