"""Threads, pauses and locks that any part may use; it knows nothing of cards or Kubernetes."""
