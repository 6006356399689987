"""What each analysis runs."""
