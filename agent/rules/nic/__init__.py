"""Rules about NICs, whatever their fabric."""
