"""DE-SGHMC: Theorem 11, its lemmas and rates; `theory.de_sghmc` is the door."""
