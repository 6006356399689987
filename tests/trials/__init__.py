"""Long trials: scripts that pytest does not collect, and cheap tests of what they recorded."""
