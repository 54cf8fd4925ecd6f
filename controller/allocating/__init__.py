"""What only a controller that allocates claims needs. Nothing but the wiring imports it: where
kube-scheduler allocates, the controller works without it."""
