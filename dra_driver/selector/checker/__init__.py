"""What an expression must keep to before it is evaluated."""
