"""What the scoreboard draws at random: one module for each algorithm, found by itself.

A module defines `ALGORITHM`, the class it draws for, and
``draw(rng) -> (problem, algorithm, n_rounds, start)``.
"""
