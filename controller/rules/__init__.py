"""Who may be given what, and whose it is: each rule beside the allocator's own in a file. Pure."""
