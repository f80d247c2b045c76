"""What the figures on image data share: tuning, runs, scores of averaged predictions, intervals, panels."""
