"""One leader at a time: the election, and the fence that stops a leader whose lease has ended."""
