"""Results over trials: intervals, speed-ups, comparisons, doubts."""
