"""AMD Instinct GPUs: what amdgpu and its compute driver (KFD) show in sysfs, without ROCm; and saved outputs of amd-smi
and rocm-smi. Imported where an AMD GPU is on the bus."""
