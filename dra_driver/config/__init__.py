"""What comes in from people: settings of the programs."""
