"""Rules about InfiniBand ports and their subnet."""
