"""Where a pod's claims are placed, or why nowhere."""
