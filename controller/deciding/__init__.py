"""The thread that decides: what changed, what follows from it, what is written and told."""
