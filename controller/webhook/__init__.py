"""The mutating admission webhooks: docs/adr/0025 has those before Kubernetes 1.36, 0030 that
without DRA, 0037 and 0038 those where kube-scheduler allocates."""
