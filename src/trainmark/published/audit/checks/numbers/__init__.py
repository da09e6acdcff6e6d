"""Numbers of a report against each other and against what a device can do."""
