"""Every claim the paper prints, and a check of each."""
