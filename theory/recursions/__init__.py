"""What the coupling recursions share: one Langevin step, and rounds one after the other."""
