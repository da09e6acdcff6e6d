"""Where the time of a step goes on a device that runs behind the host."""
