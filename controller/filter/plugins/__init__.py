"""kube-scheduler's default filters that compare a pod with other pods and with what they take."""
