"""One step for one pod, claim or template, and what follows from its writes."""
