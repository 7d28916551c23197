"""Rules about RDMA over Ethernet."""
