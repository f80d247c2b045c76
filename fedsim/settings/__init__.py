"""What an algorithm is set by: schedules, participation, networks, staleness; and the checks of numbers."""
