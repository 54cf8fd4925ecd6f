"""The commands of ``efsmi``: how they are written, what they do, what they print. Pure."""
