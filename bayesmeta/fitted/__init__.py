"""A fitted model as an object: summary, intervals, tasks, predictions."""
