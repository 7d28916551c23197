"""What codes mean that tools, plugins and switches state about the network of a host: RDMA, storage, pods, ports."""

from __future__ import annotations

from agent.rules.host.meaning import ToolMeaning

NO_TRAFFIC = "The port carries nothing. If GPU jobs use it, they have one NIC less, or fail."
RESENT = "Damaged packets are sent again or lost: jobs over this port are slower, or time out."
NETWORK_MEANINGS = {
    "verbs-no-provider": ToolMeaning(
        "warning", "the RDMA library has no driver of its own for a NIC",
        "Programs with this library do not see the NIC; those with another one, or on the host, may.", "library", "low",
    ),
    "verbs-not-passed": ToolMeaning(
        "info", "a program sees an RDMA device that it cannot open",
        "In a container it is a device that was not passed in: only the others are for it.", "hidden", "low",
    ),
    "verbs-device-gone": ToolMeaning(
        "warning", "a tool met an RDMA device that was gone when it read it",
        "Its driver was unloaded or lost the device at that moment: jobs on it end. What is listed before it is whole.",
        "gone",
    ),
    "sm-not-master": ToolMeaning(
        "warning", "the subnet manager that was asked is not the master",
        "It sets up no port. If no other one is the master, ports that come up stay in Initializing, and a lost link "
        "is not routed around.", "manager-state",
    ),
    "sm-second-master": ToolMeaning(
        "info", "two subnet managers are master",
        "In two fabrics that is as it should be. In one fabric both set up its ports: routes and LIDs change, and jobs "
        "lose their connections.", "manager-state", "low",
    ),
    "sm-standby": ToolMeaning(
        "info", "the subnet manager that was asked is on standby",
        "None where another one is the master. If this is the one that the port itself names, the master was lost.",
        "manager-state",
    ),
    "pauses-tx": ToolMeaning(
        "warning", "an interface pauses its switch far more than the others of the host do",
        "The host takes data on it more slowly than it arrives: the backlog fills the switch, and other nodes wait.",
        "pauses-sent", "low",
    ),
    "pauses-rx": ToolMeaning(
        "info", "an interface is paused by its switch far more than the others of the host are",
        "It sends more slowly: something behind its switch does not take data, or several senders share the way.",
        "pauses-received", "low",
    ),
    "pauses-tx-unweighed": ToolMeaning(
        "info", "an interface pauses its switch far more than the others of the host do",
        "If it does not also carry far more traffic, the host takes data on it more slowly than it arrives.",
        "pauses-sent", "low",
    ),
    "pauses-rx-unweighed": ToolMeaning(
        "info", "an interface is paused by its switch far more than the others of the host are",
        "If it does not also carry far more traffic, something behind its switch does not take data.",
        "pauses-received", "low",
    ),
    "perftest-queue": ToolMeaning(
        "warning", "a program of RDMA could not create a queue pair or its queues",
        "RDMA does not work for this program: it may lock too little memory, has no IPC_LOCK in a container, or its "
        "library does not fit the driver.", "memlock", "low",
    ),
    "rdma-address": ToolMeaning(
        "warning", "the connection manager of RDMA found no device or route for an address",
        "Programs that connect by address (rping, perftest with -R, storage) do not connect: the address is on no "
        "interface with RDMA, or nothing answers for it.", "path", "low",
    ),
    "rdma-refused": ToolMeaning(
        "warning", "the other side did not take a connection of RDMA",
        "It does not listen on this address, or packets do not arrive.", "path", "low",
    ),
    "ucx-device": ToolMeaning(
        "warning", "UCX_NET_DEVICES names a device that UCX does not find, or whose port is down",
        "The program uses other devices or ends. A port that is down is left out of the list, too.", "port", "low",
    ),
    "gdrcopy-unloaded": ToolMeaning(
        "warning", "GDRCopy finds no driver: gdrdrv is not loaded, or its device is not in the container",
        "Small messages between GPU and CPU go another, slower way; what needs GDRCopy (NVSHMEM) ends, or goes without "
        "it.", "gdrcopy", "low",
    ),
    "ucx-no-gdr": ToolMeaning(
        "info", "UCX has no way to register GPU memory with a NIC",
        "Data between GPU and NIC goes through the host's memory. A host without GPUs has the same line.",
        "registration", "low",
    ),
    "firmware-tool": ToolMeaning(
        "info", "a tool for firmware cannot open a NIC",
        "What it means depends on why: no root rights, secure boot, a card that the tool does not support, or one that "
        "no longer answers.", "firmware-tool", "low",
    ),
    "tcpx-gpus": ToolMeaning(
        "error", "the daemon of GPUDirect-TCPX sees fewer GPUs below its NICs than CUDA does",
        "The daemon ends; NCCL cannot connect to it, and jobs on this node fail.", "tcpx",
    ),
    "bond-no-partner": ToolMeaning(
        "warning", "LACP of a bond's member gets no answer from the switch",
        "The member carries nothing, or the bond runs without a partner: its switch port is in no group, or LACP is "
        "off there.", "bond",
    ),
    "link-inactive": ToolMeaning(
        "warning", "the port is not active, and the tool states no reason", NO_TRAFFIC, "no-link", "low",
    ),
    "completion-memory": ToolMeaning(
        "warning", "a transfer failed because a NIC may not use the memory of its key",
        "For memory of a GPU: no peer memory module, ACS or a translating IOMMU on the way, or BAR1 too small. Memory "
        "of the host: a program used it after it was freed.", "completion", "low",
    ),
    "completion-request": ToolMeaning(
        "warning", "the other side refused the request of a transfer",
        "Both sides differ in a limit, such as the size of messages or outstanding reads; or the other side's memory "
        "cannot be reached.", "completion", "low",
    ),
    "completion-local": ToolMeaning(
        "warning", "a NIC refused a request of its own host",
        "The program asks for more than the device or its driver supports (length, segments), or its library does not "
        "fit.", "completion", "low",
    ),
    "firmware-psid": ToolMeaning(
        "info", "an image of firmware is for another board than the NIC",
        "Nothing was written. Firmware of the server's maker has a PSID of its own.", "firmware-psid",
    ),
    "stack-modules": ToolMeaning(
        "error", "the RDMA stack has no modules for the running kernel",
        "The host has no RDMA and, where its NICs need these modules, no network.", "stack-modules",
    ),
    "stack-build": ToolMeaning(
        "warning", "the RDMA stack could not be built or installed",
        "The host keeps the stack that it had, or has no RDMA after its next start.", "stack-build",
    ),
    "mad-no-port": ToolMeaning(
        "info", "a tool of InfiniBand found no port that it can use",
        "Ports of RoCE have no subnet manager: ibnetdiscover, perfquery and sminfo are not for them, and no action is "
        "needed. For InfiniBand it asks for root and the module ib_umad.", "manager", "low",
    ),
    "network-shared": ToolMeaning(
        "info", "several interfaces are in one network",
        "What is sent to it by address alone leaves by the first of them, and each answers for the addresses of the "
        "others: a rail carries the traffic of another, or replies are lost.", "network-shared", "low",
    ),
    "network-shared-open": ToolMeaning(
        "warning", "several interfaces are in one network, and the kernel's settings do not keep them apart",
        "A rail carries the traffic of another, as each answers ARP for the addresses of the others; or replies are "
        "lost, as what would be answered over another interface is dropped.", "network-shared",
    ),
    "paths-open": ToolMeaning(
        "info",
        "interfaces answer ARP for the addresses of the others, or drop what would be answered over another one",
        "None where each has a network of its own. Rails that share one need other settings.", "network-shared", "low",
    ),
    "carrier-flaps": ToolMeaning(
        "warning", "the log states that an interface lost its carrier again and again",
        "Each loss stops its traffic for seconds, and the manager may take its address away: jobs over it end or wait.",
        "carrier", "low",
    ),
    "network-not-set": ToolMeaning(
        "warning", "systemd-networkd could not set an interface up",
        "Its addresses or routes are not there, or not all: what is sent over it fails or goes another way.",
        "network-not-set",
    ),
    "queue-drops": ToolMeaning(
        "warning", "the kernel dropped packets in the sending queue of an interface",
        "They are sent again, later. RDMA does not pass this queue: TCP does, and storage and control over it.",
        "queue-drops", "low",
    ),
    "carrier-lost": ToolMeaning(
        "info", "the log states that an interface lost its carrier, and not that it came back",
        NO_TRAFFIC + " Someone may have closed it or restarted the other end.", "carrier", "low",
    ),
    "carrier-none": ToolMeaning("info", "an interface is set up and has no carrier", NO_TRAFFIC, "carrier", "low"),
    "instance-limit": ToolMeaning(
        "info", "an instance of AWS sent or received more than its type allows",
        "The rest was queued or dropped, by the cloud and not by the interface. EFA traffic is not counted here.",
        "instance-limit", "low",
    ),
    "pf-off": ToolMeaning(
        "info", "a physical function is not up, and its virtual functions follow its link",
        "Their ports stay down in guests and pods.", "pf-off", "low",
    ),
    "vf-link-off": ToolMeaning(
        "info", "the physical function keeps the link of its virtual functions down",
        "Their ports stay down in guests and pods. It is so until a virtual function is given to one.",
        "vf-link", "low",
    ),
    "cma-mode": ToolMeaning(
        "info", "the connection manager of an RDMA device uses RoCE v1",
        "Programs that connect by address (rping, perftest with -R, storage) use it: their packets pass no router, and "
        "no switch puts them into the lossless class by DSCP. NCCL does not use it.", "cma-mode", "low",
    ),
    "firmware-setting-odd": ToolMeaning(
        "info", "a NIC has a setting of its firmware that others of its kind do not have",
        "It may behave otherwise than the others in the same job.", "firmware-change", "low",
    ),
    "stack-failed": ToolMeaning(
        "warning", "the service of the RDMA stack could not load a driver",
        "The host has no RDMA over NICs of this driver until it loads.", "stack-modules",
    ),
    "module-missing": ToolMeaning(
        "warning", "a module of RDMA is not there for the running kernel",
        "Without it programs on this host do not use RDMA. In a container without the modules of its host it means "
        "nothing.", "stack-modules", "low",
    ),
    "rdma-netns": ToolMeaning(
        "warning", "the RDMA device plugin ends, as each network namespace has its own RDMA devices",
        "Pods get no RDMA device from this plugin: it shares devices, which needs the mode `shared`.", "netns",
    ),
    "no-answer": ToolMeaning(
        "warning", "a host does not answer on the network that ping uses",
        "Nothing on that link answers for its address: it is off, its port is down or in another network or VLAN.",
        "path", "low",
    ),
    "address-taken": ToolMeaning(
        "warning", "another host uses the same address", "Connections to this address fail or reach the other host.",
        "address-taken",
    ),
    "file-system": ToolMeaning(
        "warning", "a program cannot use a file system", "Jobs that read or write there wait or end.", "file-system",
    ),
    "gdr-no-peermem": ToolMeaning(
        "warning", "NVSHMEM finds no peer memory module",
        "NICs do not reach the memory of GPUs: NVSHMEM leaves the transport out, and ends where it has no other.",
        "peermem",
    ),
    "ibgda-failed": ToolMeaning(
        "warning", "NVSHMEM cannot start its transport by which GPUs drive the NIC (IBGDA)",
        "What needs it, such as DeepEP with low latency, does not start; the transport by the CPU may work.", "ibgda",
    ),
    "unexplained-line": ToolMeaning(
        "info", "a program states a failure that no check explains",
        "What it means depends on what the program was doing: the lines before it, and the state of the device.",
        "unexplained", "low",
    ),
    "gds-file": ToolMeaning(
        "warning", "GPUDirect Storage does not work on the file system of a file",
        "Reads go through the host's memory, or fail where that is not allowed.", "gds", "low",
    ),
    "gds-none": ToolMeaning(
        "warning", "GPUDirect Storage supports no storage of this host",
        "Reads from storage into GPU memory go through the host's memory (compatibility mode).", "gds", "low",
    ),
    "gds-none-strict": ToolMeaning(
        "warning", "GPUDirect Storage supports no storage of this host, and its configuration allows no other way",
        "Programs that read by it fail (`use_compat_mode` is false).", "gds", "low",
    ),
    "gds-rdma-down": ToolMeaning(
        "warning", "RDMA devices that GPUDirect Storage is to use are down",
        "Storage over these devices is slower, or not reached.", "gds",
    ),
    "gid-none": ToolMeaning(
        "warning", "a program found no GID that it can use on an RDMA device",
        "RoCE over this device does not work for it: its interface has no address, or is in another network namespace.",
        "gid", "low",
    ),
    "gid-shared": ToolMeaning(
        "warning", "RDMA devices of one host have the same address",
        "Connections to this address use one of them, and the other has none: its rail carries nothing.",
        "address-taken", "medium",
    ),
    "perftest-gid": ToolMeaning(
        "warning", "perftest used an index of the GID table that is empty (all zeros), and could not connect",
        "RoCE does not connect with an empty GID: the other side has no address to answer to.", "gid",
    ),
    "gid-index-differs": ToolMeaning(
        "info", "the GID of RoCE v2 has another index on another host or pod",
        "One `NCCL_IB_GID_INDEX` for all of them names an empty or another GID on some: they do not connect (error 12, "
        "or `ibv_modify_qp failed`).", "gid-index", "low",
    ),
    "plugin-no-umad": ToolMeaning(
        "warning", "the RDMA device plugin leaves a NIC out, because one of its device files is missing",
        "Pods that ask for it get no RDMA device.", "umad",
    ),
    "cni-no-guid": ToolMeaning(
        "warning", "a virtual function has no valid GUID, so that the pod was not started",
        "Pods with this network do not start. InfiniBand needs a GUID for each virtual function.", "vf-guid",
    ),
    "cni-failed": ToolMeaning(
        "warning", "a pod was not joined to a network", "The pod does not start. The end of the line states why.",
        "cni", "low",
    ),
    "sriov-sync": ToolMeaning(
        "warning", "the virtual functions of a node could not be set up",
        "Virtual functions of this node are missing or stay as they were: pods that ask for them wait.", "cni",
    ),
    "guid-zero": ToolMeaning(
        "warning", "RDMA devices without a GUID: virtual functions to which none was given",
        "InfiniBand: the port stays down. RoCE: programs that connect by address do not work.", "vf-guid", "low",
    ),
    "data-wrong": ToolMeaning(
        "error", "a test of communication received other data than was sent",
        "Jobs over this path compute wrong results.", "corrupt",
    ),
    "ib-duplicate": ToolMeaning(
        "error", "two ports of the subnet have the same GUID or LID", "Routes to both are wrong.", "subnet",
    ),
    "ib-several-managers": ToolMeaning(
        "error", "two subnet managers are master in one subnet",
        "Each undoes the routes of the other: ports lose their LIDs and routes.", "subnet",
    ),
    "ib-credit-loop": ToolMeaning(
        "error", "the routes of the subnet form a loop of credits", "Under load the fabric can stop for good.",
        "subnet",
    ),
    "ib-route": ToolMeaning(
        "warning", "no route of the subnet leads to a port",
        "Jobs between these two ports do not connect: a port on the way is down, or the routes are old.", "subnet",
    ),
    "ib-bad-link": ToolMeaning("warning", "a check of the subnet states a bad link", RESENT, "wire"),
    "ib-local-link": ToolMeaning("warning", "the port that a tool of InfiniBand uses has no link", NO_TRAFFIC, "port"),
    "ib-firmware-differs": ToolMeaning(
        "info", "a device has older firmware than others of its kind", "None by itself.", "subnet", "low",
    ),
    "sharp-failed": ToolMeaning(
        "warning", "SHARP could not be set up for a job",
        "Reductions do not run in the switches: NCCL goes on without it, slower, or ends where it must have it.",
        "sharp", "low",
    ),
    "sharp-manager": ToolMeaning(
        "warning", "the aggregation manager of SHARP (sharp_am) ended, as it is not where the master subnet manager is",
        "No job of the subnet has SHARP: reductions do not run in the switches.", "sharp-manager",
    ),
    "efa-memory": ToolMeaning(
        "warning", "libfabric could not register memory with an EFA device",
        "The program ends, or goes on without EFA.", "efa-memory", "low",
    ),
    "psm-no-device": ToolMeaning(
        "warning", "PSM2 finds no adapter of Omni-Path that is active",
        "MPI over Omni-Path uses another, slower transport, or ends.", "psm", "low",
    ),
    "firmware-recovery": ToolMeaning(
        "error", "a NIC is in its recovery mode (livefish): it runs without its firmware",
        "It has no ports until firmware is written and the server is power cycled.", "firmware-recovery",
    ),
    "firmware-silent": ToolMeaning(
        "warning", "the firmware of a NIC does not answer",
        "Its ports can stop at any time; settings and updates fail.", "firmware-silent", "low",
    ),
    "firmware-reset": ToolMeaning(
        "warning", "a NIC could not be reset",
        "New firmware or settings are not active until the server is power cycled.", "firmware-silent",
    ),
    "firmware-pending": ToolMeaning(
        "info", "new firmware or settings of a NIC wait for a reset", "Until then the old ones are active.",
        "firmware-change",
    ),
    "firmware-locked": ToolMeaning(
        "info", "a NIC does not allow its firmware or settings to be changed", "Nothing was written.",
        "firmware-change",
    ),
    "firmware-refused": ToolMeaning(
        "info", "an image of firmware was refused", "Nothing was written; the old firmware runs.", "firmware-psid",
    ),
    "firmware-setting": ToolMeaning(
        "info", "a NIC does not have a setting, or refused its value", "Nothing was changed.", "firmware-change", "low",
    ),
    "module-unreadable": ToolMeaning(
        "info", "the module of a port could not be read",
        "What it means depends on the port: none is plugged in, it has no memory to read, or it is faulty.",
        "wire", "low",
    ),
    "mtu": ToolMeaning(
        "warning", "a packet or an MTU is larger than a device on the way allows",
        "Large packets are lost or refused, while small ones (ping) pass.", "mtu-values", "low",
    ),
    "perftest-gpu": ToolMeaning(
        "warning", "perftest could not use memory of a GPU",
        "The test does not run; a job that registers memory of GPUs with the NIC can meet the same.",
        "registration", "low",
    ),
    "completion-flushed": ToolMeaning(
        "info", "a transfer ended because its connection had ended (status 5, flushed)",
        "It follows from another error: the first one of this program, or of the other side, states what failed.",
        "path", "low",
    ),
    "completion-unknown": ToolMeaning(
        "warning", "a transfer of RDMA failed, and the line does not state how",
        "The line after it has the status: 12 is a peer that does not answer, 5 follows from another error.",
        "completion", "low",
    ),
    "measured-below": ToolMeaning(
        "warning", "perftest measured less than the limit that it was given",
        "What it means depends on the limit, and on what else used the link.", "path", "low",
    ),
    "rdma-cm-unloaded": ToolMeaning(
        "info", "the connection manager of RDMA is not there for a program (rdma_ucm)",
        "Programs that connect by address do not start; NCCL does not need it.", "umad", "low",
    ),
    "perftest-peer": ToolMeaning(
        "warning", "perftest does not reach its other side over the control connection",
        "RDMA was not tried: the server is not started or ended, a firewall is in the way, or the address is wrong.",
        "control", "low",
    ),
    "counter-grows": ToolMeaning(
        "warning", "a counter of errors of a port grew between two moments", RESENT, "wire", "low",
    ),
    "interface-down": ToolMeaning(
        "warning", "an interface is down that a command needs", NO_TRAFFIC, "interface", "low",
    ),
    "interface-missing": ToolMeaning(
        "warning", "a command names an interface or device that is not there",
        "It was renamed, its driver is not bound, it is in another network namespace, or the name is wrong.",
        "interface", "low",
    ),
    "no-route": ToolMeaning(
        "warning", "the host has no route to an address", "Nothing is sent to it.", "interface", "low",
    ),
    "answers-lost": ToolMeaning(
        "info", "ping lost some of its packets",
        "The first packet waits for the address of its peer. Others are dropped by a link, a switch or the other host.",
        "path", "low",
    ),
    "no-rights": ToolMeaning(
        "info", "a network tool ran without the rights that it needs", "Nothing was changed or read.", "refused",
    ),
    "setting-refused": ToolMeaning(
        "info", "the kernel, a driver or the firmware refused a request of a network tool",
        "The setting is as before. Whether that matters depends on the setting.", "refused", "low",
    ),
}  # fmt: skip
