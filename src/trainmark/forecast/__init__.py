"""How fast training would run at sizes that nobody ran, with an interval, and how often that was right."""
