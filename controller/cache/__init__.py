"""The cluster as the watches report it. One thread reads and writes it."""
