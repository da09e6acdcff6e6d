"""Why the device did nothing: the gaps of a profile by cause, and throttled clocks."""
