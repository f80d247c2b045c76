"""DE-SGLD and DE-SGHMC, two algorithms of one paper: see `theory.de_sgld` and `theory.de_sghmc`."""
