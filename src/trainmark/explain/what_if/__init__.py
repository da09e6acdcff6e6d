"""What a change would make of the step: predictions, their intervals, and the record of verified ones."""
