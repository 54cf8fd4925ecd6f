"""Devices of other drivers: kube-scheduler allocates them together with ours."""
