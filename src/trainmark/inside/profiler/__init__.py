"""A few profiled steps after the measured ones, taken inside the measured program.

`TRAINMARK_PROFILE` names the folder for traces and manifests; without it nothing here runs. Standard library
and the framework that the program has imported; Python 3.7 and later.
"""
