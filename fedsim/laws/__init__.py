"""Laws along time, what is estimated from replicas, distances between them, and their files."""
