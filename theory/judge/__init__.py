"""Bounds against exact laws: the quantities, `check` and its verdict, `examine`, and the scoreboard."""
