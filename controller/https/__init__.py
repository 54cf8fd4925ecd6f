"""The HTTPS server that kube-scheduler (extender) and API servers (webhook) call."""
