"""One decision for all waiting members of a PodGroup: which nodes, or why none. Pure."""
