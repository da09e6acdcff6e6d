"""The machine, described and sampled. What is sent to nodes (launch/bundle.py) is standard library only."""
