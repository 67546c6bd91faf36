"""What a person asked for: the run config and the task set, read once, checked, and frozen."""
