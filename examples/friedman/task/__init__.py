"""What the programs of this family share: the problem, the loop, a reference in float64."""

METRICS = {"rmse": {"title": "RMSE", "better": "lower"}}
