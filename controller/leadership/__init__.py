"""One controller at a time: the election, and the fence that holds when it was lost unnoticed."""
