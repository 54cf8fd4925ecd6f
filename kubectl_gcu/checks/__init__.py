"""What `kubectl gcu doctor` checks, one module for each part of an installation."""
