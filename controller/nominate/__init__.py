"""kube-scheduler allocates, and this names the node: packing without a second allocator."""
