"""Search for a setting in which a theorem fails within its hypotheses: `python -m tools.search`.

`numbers` maps a point of the unit cube to the numbers of a setting, `settings` makes problems, algorithms
and starts of them, `judge` compares every theorem with its exact quantity, `precise` repeats what is near
one with 60 digits, `adversary` climbs, `report` prints.
"""
