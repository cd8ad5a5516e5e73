"""The queue as mathematics: no randomness, no files."""
