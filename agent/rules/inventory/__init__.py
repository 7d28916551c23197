"""Rules that compare with what an earlier run saw."""
