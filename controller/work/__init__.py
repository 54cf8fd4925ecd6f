"""What is to be done and what is under way: keys, news, writes, what is remembered of them."""
