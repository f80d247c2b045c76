"""DE-SGLD: Theorem 1, its lemmas and rates, and what both algorithms share; `theory.de_sgld` is the door."""
