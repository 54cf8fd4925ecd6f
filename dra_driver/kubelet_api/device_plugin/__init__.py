"""The kubelet's device-plugin API; it knows no cards."""
