"""CXL memory: expanders without driver, memory device or region, and regions over unequal links.

What is wrong with the link of one expander is in `pcie`.
"""
