"""What claims say, ask for and hold."""
