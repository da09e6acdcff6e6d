"""The host: processors, memory, control groups, container."""
