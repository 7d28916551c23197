"""Huawei Ascend: NPUs that are missing or without driver, HCCS ports and pairs, RoCE ports inside NPUs, HCCL settings.

PCIe links of NPUs are judged in `pcie`, counts of a platform in `host`: they are not repeated here.
"""
