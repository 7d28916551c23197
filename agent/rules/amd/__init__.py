"""AMD Instinct GPUs: hives, XGMI links and partitions, as the compute driver shows them."""
