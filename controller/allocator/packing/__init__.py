"""Which node and which card is preferred where several fit."""
