"""From start to end of the agent: start-up, readiness, and the choice of DRA or device plugin."""
