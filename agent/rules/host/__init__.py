"""Rules of the host as a whole."""
