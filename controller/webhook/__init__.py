"""The mutating admission webhook of clusters before Kubernetes 1.36; docs/adr/0025 has why."""
