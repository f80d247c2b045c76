"""Random numbers of lanes: streams are counters, Philox makes words of them, Box-Muller normals."""
