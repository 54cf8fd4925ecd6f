"""How long prepare and unprepare take, ours beside a plugin on upstream's own helper."""
