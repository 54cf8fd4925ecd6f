"""From start to end of the agent: start-up, readiness, and DRA or device plugin by the node."""
