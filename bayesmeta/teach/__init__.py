"""The page to play with (``bayesmeta explore``): plain functions behind it, a server, questions."""
