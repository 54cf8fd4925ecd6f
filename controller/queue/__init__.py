"""The queue of events, and of the pods and claims that are to be reconciled."""
