"""The DRA front of the node side: publishes ResourceSlices and answers the kubelet."""
