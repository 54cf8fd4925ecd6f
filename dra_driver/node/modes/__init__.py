"""What each mode does to a card when a device of it is prepared, checked and unprepared."""
