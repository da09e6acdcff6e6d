"""The programs measured. They run in a framework's own environment, with the probe and nothing else of ours."""
