"""Rules about what is near to what."""
