"""Sentences of the kernel about networks that no driver of a NIC writes: bonds, bridges, addresses, tables, RDMA's
connections, the network of Lustre. Files of Linux (6.12), where no other is named."""

from probes.kernel.sentence import DRIVER, row

NETWORK_STACK = (
    row(DRIVER, "lacp-silent", "bonding", "No 802.3ad response",
        r"(?P<name>\S{1,15}): (?:Warning: )?No 802\.3ad response from the link partner", "Linux bonding/bond_main.c"),
    row(DRIVER, "network-loop", "bonding", "illegal loopback",
        r"(?P<name>\S{1,15}): (?:\(slave \S{1,32}\): )?An illegal loopback occurred on", "Linux bonding/bond_3ad.c"),
    row(DRIVER, "network-loop", "bridge", "own address as source",
        r"(?P<name>\S{1,15}): received packet on \S{1,15} with own address as source address", "Linux bridge/br_fdb.c"),
    row(DRIVER, "address-duplicate", "ipv6", "duplicate address",
        r"(?<!\S)(?P<name>(?!wl)\S{1,15}): IPv6 duplicate address (?P<what>[0-9a-f:]{3,40})", "Linux ipv6/addrconf.c"),
    row(DRIVER, "neighbor-table", "neighbour", "table overflow",
        r"(?:neighbour: )?(?P<what>arp_cache|ndisc_cache): neighbor table overflow|^Neighbour table overflow",
        "Linux core/neighbour.c"),
    row(DRIVER, "conntrack-full", "nf_conntrack", "table full, dropping packet",
        r"nf_conntrack: .{0,40}table full, dropping packet", "Linux netfilter/nf_conntrack_core.c"),
    row(DRIVER, "checksum-failure", "net", "hw csum failure",
        r"(?P<name>[\w.@-]{1,15}): hw csum failure", "Linux core/dev.c"),
    row(DRIVER, "rdma-refused", "ib_cm", "timed out. state",
        r"cm_destroy_id_wait_timeout: cm_id=\S{1,20} timed out\. state ", "Linux 6.8 infiniband/core/cm.c"),
    row(DRIVER, "queue-stalled", "ib_ipoib", "transmit timeout: latency",
        r"(?:\S{1,24}: )?(?P<name>ib\S{1,13}): transmit timeout: latency", "Linux infiniband/ulp/ipoib/ipoib_main.c"),
    row(DRIVER, "queue-error", "ib_ipoib", " event (status=",
        r"(?:\S{1,24}: )?(?P<name>ib\S{1,13}): failed (?:cm )?(?:send|recv) event \(status=(?!5\b)",
        "Linux infiniband/ulp/ipoib/ipoib_ib.c"),  # 5: flushed, as an interface is taken down
    row(DRIVER, "storage-link", "lnet", "kiblnd_",
        r"\ALNet(?:Error)?: .{0,60}kiblnd_\w{1,40}\(\)\) (?=.{0,200}(?:[Tt]imed out|failed|error -?\d)).{0,200}?"
        r"\b(?P<name>[\w.:]{2,40}@o2ib\d{0,4})\b",
        "Lustre 2.17 lnet/klnds/o2iblnd/o2iblnd_cb.c"),
)  # fmt: skip
