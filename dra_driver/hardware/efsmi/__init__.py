"""Running ``efsmi``, and reading what it prints."""
