"""The page to play with."""
