"""Commands about results over time."""
