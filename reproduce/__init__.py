"""The figures: `python -m reproduce --list` shows them, `python -m reproduce` makes them."""
