"""From a table of one's own to the statistics of its tasks."""
