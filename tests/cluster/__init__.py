"""A real Kubernetes on this machine, for the tests: see docs/dev/test-cluster.md."""
