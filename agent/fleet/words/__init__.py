"""Answers as text: who, what they have, what is usual, of how many. Folded host lists are cut where a line ends."""
