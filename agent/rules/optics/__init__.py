"""Rules about cables and optical modules."""
