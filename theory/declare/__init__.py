"""How a theorem, an erratum and a reference are declared, and the `Bound` that follows from a theorem."""
