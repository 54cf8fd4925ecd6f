"""The nodes with GCUs, their cards, and who holds how much of each."""
