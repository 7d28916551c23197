"""A made-up fleet: N nodes' reports from the fixture machines, with planted oddities and a file that says what is odd.

Every template is a fixture machine that was really scanned and judged; a node is a template with identities, counters
and times of its own. The same plan gives the same bytes. Start at `bench/fleet/plan.py`.

The truth (`Plan.truth`, `--truth FILE`) is one JSON object:

    {"format": "fabricscope.fleet-truth/1", "nodes": 1000, "seed": 1, "sweeps": ["2026-01-15T08:00:00Z", ..],
     "groups": [{"name": "h100-ib-1", "platform": "hgx-h100-8", "shape": "8xh100-..", "hosts": "gpu[0001-0320]",
                 "nodes": 320, "unit_nodes": 32, "units": 10, "racks": false, "link_layer": "InfiniBand", "rails": 8,
                 "layout": "rail" | "fat-tree", "oversubscription": 1.0, "fabric": "h100-ib-1" | null,
                 "switches": {"leaf": 80, "spine": 256, "core": 128}, "tiers": 3,
                 "subnet": "fe80:0000:0000:0001" | null, "judged_alike": true}],
     "reports": [{"sweep": 0, "files": 1000, "readable": 997}],
     "oddities": [{"kind": "mtu-1500", "hosts": ["gpu0312"], "subject": "netdev:0000:2e:00.0", "sweep": 0,
                   "detail": {"mtu": 1500, "usual": 4220},
                   "findings": [{"rule": "roce-mtu-small", "subject": "netdev:0000:2e:00.0", "severity": "warning"}]}],
     "noise": [{"kind": "firmware-rollout", "hosts": "every second one of gpu[..]", "detail": {..}}]}

`sweep`: the first one in which it is so; it stays. `subject`: as in findings ("node", "pci:..", "gpu:..", "port:..",
"netdev:.."), or "switch:NAME/PORT" for the lower end of a cable between switches. `findings`: what the node's own
report says because of it, beyond what healthy nodes of its kind say; empty: only the fleet can see it. `noise`: true
differences that are none of the answers. Nothing else is odd: a node that is in no oddity has the verdict ok.

What `detail` has, by kind (always the value and the "usual" one, where the fleet has one):

- gpu-link-narrow, nic-link-narrow: width. gpu-link-slow: speed_gt_s. nvlink-fewer: link, nv (of all its pairs).
- nic-firmware-one, nic-firmware-node (all rails of the node), drift-firmware: firmware. driver, drift-driver: driver.
- vbios (all GPUs), bios (where reports say it), kernel, cmdline: a word of the same name.
- mtu-1500: mtu. pfc-off: pfc. trust-pcp: trust. port-slow: rate_gbit_s, link. port-down: state. nic-no-driver: driver.
- unknown-checks: probe, status; its verdict is unknown. drift-gpu-lost: gpus. node-gone: sends nothing from then on.
- duplicate-guid: node_guid, mac (the GIDs too). -serial: serial. -machine-id: machine_id. -ip: address. -lid: lid,
  subnet. -gpu-uuid: uuid. Both hosts are named, the one whose own it is first.
- cable-swapped-rails: rails, devices, switches (each is in the other's). cable-swapped-ports (two hosts): rail, switch,
  ports (each is in the other's). rail-wrong-leaf: rail, switch and port where it is, meant (the switch).
- uplink-missing, uplink-slow, uplink-narrow: fabric, link ("4xHDR", "2xNDR"; null: no cable). No host.
- gpus-half-lost, gpus-all-lost: gpus. nic-board: board_id. nic-numa, gpu-numa: numa_node. payload-small:
  max_payload_bytes. gid-index: index. prio-tc, cnp-dscp, cnp-priority. acs-on: acs (of a port). os, smt-off:
  threads_per_core. numa-memory: memory_gib, numa_node. nvlink-clique: clique. nvlink-domain: cluster_uuid.
- uplink-swapped: the ports of both cables, "+" between. uplink-half-unit: leaves; the subject is the first.
- clock-ahead, clock-behind: seconds. Only on request: a stream has no time of arrival that shows them.
- rate-link-downs: link_downed, counted between the last two sweeps. counter-high, which is noise: the same, since
  before the first. Both on request.
- uplink-side-exchanged: cables (of each leaf); the subject is both leaves. uplink-ragged-unit: leaves; the subject is
  the first. rails-exchanged, rails-exchanged-half (of half of a unit's
  nodes), leaves-exchanged: switches. On request.
- KIND+KIND, on request: both on one node, written down as two oddities; findings are those of both.
- rate-retransmissions: packet_seq_err, counted likewise: a finding of the port and no outlier, for it follows traffic.
- rate-symbol-errors: symbol_error, counted between the last two sweeps. gpu-model: models. On request.
- mtu-1500-first: mtu, of another rail. dscp-map: dscp (what differs). nic-lost: rails (that are left).
- nccl-setting: setting. nccl-version: nccl. small-class-KIND: as KIND, on one of two nodes of a product (h200-twin-1).
- nvlink-domain-other: cluster_uuid, that of the next rack. duplicate-ip-prefix: address; the second has another length.
- same-name (three hosts, by the names they should have): name. gpu-moved (two hosts): gpus, uuids of these.
- flapping: there in every second sweep; from six sweeps on. node-never: no report at all. stale-finding: days, width.
- port-shared (two hosts): switch, port. spine-dark: fabric; the subject is the spine.
- uplink-older is noise, and on request: a link that is slower and can do no more, which iblinkinfo tells.
- stale: days since it was observed. slow-probe: probe, seconds.
- damaged-truncated, damaged-not-json, damaged-schema: readable (false). newer-minor is read, and is noise.

A drift is an outlier too from its sweep on. What follows from an oddity is not told: the NIC beside a lost GPU is no
rail any more, one without a driver has no port, and its cable is nowhere. Rails are numbered in the order of PCI
addresses, from 0; rail k of unit u is meant for the switch "GROUP-leaf-uNN-rK" (NN from 01), port = the node's place in
its unit, from 1 ("Ethernet7" by LLDP, 7 by InfiniBand). Units are `unit_nodes` hosts in a row from the group's first.
Not odd: LIDs 256, 257 and 65535 of ports inside B200 nodes (role auxiliary: no subnet of the fleet), LID 65535 of ports
that are down.
"""
