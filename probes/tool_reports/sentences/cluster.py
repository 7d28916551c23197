"""Sentences of what runs a cluster: Kubernetes and its plugins, Slurm, health checks, UFM, BMCs, the host's own checks.

Sources: NVIDIA/libnvidia-container src/, NVIDIA/nvidia-container-toolkit, NVIDIA/k8s-device-plugin internal/rm,
NVIDIA/gpu-operator cmd/nvidia-validator, kubernetes-sigs/dra-driver-nvidia-gpu cmd/, leptonai/gpud
components/accelerator, mej/nhc scripts/, SchedMD/slurm src/slurmd, src/plugins/gres, src/interfaces/gres.c, UFM (its
events), DMTF message registries (ResourceEvent, OpenBMC), mchehab/rasdaemon ras-*-handler.c.
"""

from __future__ import annotations

from probes.tool_reports.sentences.sentence import ToolSentence, row

_UUID = r"(?P<part>GPU-[0-9a-f][\w-]{1,60})"
_WHY = r"(?P<what>[^\n\"\\]{4,120})"

CLUSTER: tuple[ToolSentence, ...] = (
    # timedatectl of systemd (NTP: before version 239), chronyc tracking, ntpstat
    row("clock-free", r"^(?P<what>(?:System clock|NTP) synchroni[sz]ed: no)\b"),
    row("clock-free", r"^(?P<what>Leap status {1,12}: Not synchroni[sz]ed)\b"),
    row("clock-free", r"^(?P<what>unsynchroni[sz]ed)[ \t]*$"),
    # Containers, the device plugin, the operator
    row("container-cgroup-access",
        r"nvidia-container-cli: (?P<what>mount error: failed to add device rules|mount error: open failed: "
        r"/sys/fs/cgroup|container error: (?:cgroup subsystem devices not found|failed to get device cgroup mount "
        r"path))"),
    row("container-image-files",
        r"nvidia-container-cli: (?P<what>mount error: file creation failed: [^\n]{4,200}: file exists)"),
    row("container-nvml", r"nvidia-container-cli: (?P<what>detection error: [^\n]{4,100})"),
    row("container-setup",
        r"nvidia-container-cli: (?P<what>(?:mig|ldcache|requirement|container|mount) error: [^\n]{4,100})"),
    row("container-setup", r"failed to create NVIDIA Container Runtime: (?P<what>[^\n\"]{4,120})"),
    row("container-cdi-spec",
        r"(?:failed to generate CDI spec|Failed to (?:generate|create) CDI spec)\b[^\n]{0,120}?(?::|NVML:) "
        r"?(?P<what>[A-Z][\w/ ]{4,60})(?:\"|$)"),
    row("container-cdi-spec", r"open (?P<what>/proc/driver/nvidia-caps/mig-minors): no such file"),
    row("container-cdi-spec", r"CDI container edits did not apply"),
    row("kube-no-healthy",
        r"Allocate failed due to no healthy devices present; cannot allocate unhealthy devices "
        r"(?P<what>[\w./-]{3,60})"),
    row("plugin-no-driver",
        r"unable to load resource managers to manage plugin devices|Incompatible strategy detected auto|No devices "
        r"found\. Waiting indefinitely"),
    row("plugin-failed",
        r"(?:Failed to start plugin|error starting plugins|Could not start device plugin for "
        r"'[\w./-]{3,60}'): " + _WHY),
    row("plugin-unwatched", r"Failed to start health check: " + _WHY),
    row("mig-refused",
        r"(?P<what>all devices on the node must be configured with the same migEnabled|at least one device with "
        r"migEnabled=true was not configured correctly|has no MIG devices configured|error setting MIG(?:Config|"
        r"Mode): [^\n\"]{4,80}|MIG mode is enabled, but no MIG devices were found)"),
    row("mig-refused", r"error creating (?:MIG device|GPU instance for '[\w.+]{3,20}'): (?P<what>[^\n\"]{4,80})"),
    row("operator-failed",
        r"level=fatal msg=\"(?P<what>error validating [\w -]{3,60}|GPU resources are not discovered by the node)"),
    row("operator-waits",
        r"error validating (?P<what>[\w -]{3,60})|GPU resources are not yet discovered by the node|[Ff]ailed to "
        r"validate the driver, retrying|waiting for mofed to be installed|driver is not ready: "),
    row("stack-failed",
        r"Failed to unload kernel module: (?P<what>\w{3,20}): Resource temporarily|MOFED driver[^\n]{0,40}in use, "
        r"cannot unload"),
    row("stack-build", r"Failed to build MLNX_\w{2,20} for (?P<what>\d\S{2,60})"),
    row("stack-build",
        r"(?P<what>\b(?:mlnx|mlx5|doca|ofed)-[\w.-]{2,50} : Depends: \S{2,80}(?: \([^)\n]{3,40}\))? but it is not "
        r"\w{3,20})"),
    row("stack-build", r"Failed to (?:build|install) (?P<what>mlnx-[\w.-]{2,40}) (?:RPM|DEB|package)"),
    row("stack-build", r"The current MLNX_OFED_LINUX is (?P<what>intended for [\w.]{3,20})"),
    row("stack-modules", r"OFED driver image not found for kernel (?P<what>[\w.-]{3,60})"),
    row("stack-failed", r"FATAL: Could not load (?P<what>mlx5_\w{2,10})|Failed to restart driver: openibd"),
    row("gpu-driver-other",
        r"GPU \\?\"(?P<bdf>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\\?\" is bound to \\?\"(?P<what>\w{3,20}\\?\" "
        r"driver)"),
    row("kube-pod",
        r"\bpod (?P<what>[\w.-]{0,60}(?:mofed|ofed|nvidia|gpu|rdma|sriov|dcgm)[\w.-]{0,80}(?: on node [\w.-]{1,80})? "
        r"is not ready: [^\n'\"]{4,100})"),
    row("kube-event",  # of a controller of the site: those of the kubelet and scheduler are about pods
        r"^Warning {2,40}(?P<reason>(?!(?:Failed|Back|Kill|Evict|Unhealthy|Network|Inspect|Node|Policy)[A-Z])[A-Z]"
        r"\w{3,60})(?=[^\n]{0,300}?(?:G[Pp][Uu]|gpu|R[Dd][Mm][Aa]|rdma|RoCE|roce|Infini[Bb]and|infiniband|\bIB|mlx5|"
        r"\bN[Ii][Cc]s?\b|N[Vv][Ll]ink|Xid|XID|NPU|npu|Gaudi|[Nn]euron|PCIe))"
        r" {2,60}\S{1,12}(?: \([^)\n]{3,30}\))? {2,60}"
        r"(?!kubelet|default-scheduler|multus|\S{0,60}controller|cluster-autoscaler|karpenter)[\w./-]{3,80} {2,80}"
        r"(?P<what>\S[^\n]{5,200})"),
    row("kube-free",
        r"\b\d{1,5} Insufficient (?P<what>(?:nvidia\.com/|amd\.com/gpu|habana\.ai/|huawei\.com/|rdma/|"
        r"aws\.amazon\.com/neuron|vpc\.amazonaws\.com/efa|[\w.]{3,40}/\w{0,30}(?:rdma|sriov|hca|mlx|gpu))[\w/-]{0,60})"),
    row("kube-free", r"insufficient (?:unused )?quota for (?P<what>[\w.]{2,40}/[\w./-]{2,40})"),
    # Networks of pods
    row("sriov-sync",
        r"(?:failed to set VFs number|SriovNetworkNodePolicy apply failed)[^\n]{0,10}?[:,] ?(?P<what>[^\n]{4,120})"),
    row("sriov-sync",
        r"fail(?:ed)? to (?:configure sriov interface|set NumVfs file)[^\n]{0,40}?"
        r"(?P<bdf>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?:: (?:write )?\S{0,80}: (?P<what>[a-z][\w ]{4,60}))?"),
    row("sriov-sync",
        r"Fail to config vfs for ndev = (?P<part>[\w.-]{2,20})|"
        r"Fail to configure sriov; error = {1,2}(?P<what>\w[^\n]{2,80})"),
    row("no-vf", r"no free VFs? in (?:the )?pool (?P<what>[\w./-]{3,60})|LoadConf\(\): VF pci addr is required"),
    row("ib-guid-manager", r"ib-kubernetes: (?P<what>failed to [^\n]{4,80})"),
    # ComputeDomains
    row("fabric-refused",
        r"NVLink fabric (?P<what>registration error|not attached) \(device \d{1,3}/(?P<part>GPU-[\w-]{1,60})\)"),
    row("dra-missing", r"DRA driver (?P<what>[\w.-]{4,60}) is not registered"),
    row("imex-waits", r"current node not ready in ComputeDomain|IMEX daemon not ready: (?P<what>\w{3,20})"),
    row("imex-missing",
        r"(?:error \(re\)starting IMEX daemon|IMEX daemon check failed)[: ]{1,3}" + _WHY + r"|is nvidia-imex "
                                                                                           r"installed on this node"),
    row("imex-domain",
        r"^Domain State: (?P<what>DOWN|DEGRADED|INVALID)|Unable to connect to IMEX|Failed to connect to the IMEX "
        r"daemon"),
    row("driver-too-old",
        r"feature requires GPU driver version (?P<wants>>= [\d.]{5,16}), but found (?P<what>[\d.]{5,16})"),
    # gpud
    row("port-dropped",
        r"(?P<part>[a-z]\w{2,12}\d) port \d{1,3} (?P<what>down since [\dT:Z-]{10,24}(?: \(and flapped back to "
        r"active\))?)"),
    row("port-dropped", r"(?P<what>only \d{1,3} port\(s\) are active and >=\d{1,4} Gb/s, expect >=\d{1,3} port\(s\))"),
    row("gpu-count",
        r"nvidia gpu count mismatch \((?P<what>found \d{1,3}, expected \d{1,3})\)|NVML is loaded but GPU is not "
        r"detected"),
    row("dcgm-memory-pending", _UUID + r" needs reset \((?P<what>detected pending row remapping)"),
    row("dcgm-memory",
        r"(?P<bdf>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]) qualifies for RMA \((?P<what>row remapping "
        r"failed)"),
    row("dcgm-memory", _UUID + r": (?P<what>[\w ]{4,20} uncorrected [1-9]\d{0,12} errors)"),
    row("fabric-state", r"with unhealthy fabric state: (?:GPU )?" + _UUID + r": (?P<what>[\w ,]{4,80})"),
    row("fabric-manager-off",
        r"fabric manager (?:found but not active|supported but nv-fabricmanager executable not found)"),
    row("dcgm-link", r"nvlink threshold violated: (?P<what>require >=\d{1,3} GPUs with all links active; got \d{1,3})"),
    row("dcgm-hot",
        _UUID + r" (?:current|HBM) temperature is (?P<what>\d{1,3}) °C exceeding the threshold"),
    row("dcgm-hot",
        r"(?P<what>hw slowdown events frequency per minute [\d.]{1,8}) \([^)\n]{4,60}\) exceeded threshold"),
    row("peermem-unused", r"ibcore is not using peermem module"),
    row("metric-sxid", r"\bSXID (?P<what>\d{5,6})(?:\([^)\n]{2,60}\))? detected on PCI:(?P<device>[0-9a-f:.]{7,16})"),
    # Slurm, and the checks of its nodes
    row("check-xid", r"\bFound XID errors?: (?P<xid>\d{1,3})\b"),
    row("edac-corrected",  # of edac-util, of `ras-mc-ctl --error-count`
        r"^mc\d{1,3}: \w{2,12}: (?P<part>[A-Za-z][\w#.-]{2,60}): (?P<what>\d{4,12} Corrected Errors)"),
    row("edac-corrected", r"^(?P<part>[\w#.-]{0,60}DIMM[\w#.-]{1,20})[ \t]{1,20}(?P<what>\d{4,12})[ \t]{1,20}0[ \t]*$"),
    row("slurm-gpus",  # of `sinfo`, with the node before it
        r"^(?P<part>(?=[a-z\[\],._-]{0,40}\d)[a-z][\w.\[\],-]{0,60})[ \t]{1,40}(?:[^\n]{0,160}[ \t])?"
        r"gres/gpu count reported lower than configured \((?P<what>\d{1,3} < \d{1,3})\)"),
    row("slurm-gpus",
        r"gres/gpu count reported lower than configured \((?P<what>\d{1,3} < \d{1,3})\)|gres/gpu: count changed for "
        r"node (?P<node>[\w.-]{1,60})|gres/gpu count mismatch on node (?P<host>[\w.-]{1,60})"),
    row("slurm-hardware", r"error: Node configuration differs from hardware: (?P<what>[\w:=() ]{4,160})"),
    row("slurm-hardware",
        r"error: Node (?P<node>[\w.-]{1,60}) has (?P<what>low \w{3,16} size \(\d{1,12} < \d{1,12}\))"),
    row("amd-no-driver", r"\bamdgpu driver unavailable\b"),
    row("slurm-gres",
        r"This GPU specified in \[slurm\|gres\]\.conf has mismatching Cores or Links|Discarding the following "
        r"config-only GPU|fatal: gres\.conf duplicate records for |configured to autodetect "
        r"(?P<what>nvml|rsmi|oneapi) functionality, but|error: System GPU detection failed|"
        r"(?P<ignored>autodetected GPUs are being ignored)"),
    row("slurm-gpu-lost",
        r"error: Failed to (?:initialize NVML|get device handle for GPU \d{1,3}): (?P<what>[A-Z][\w/ ]{4,60})"),
    row("slurm-silent",
        r"DUE TO NODE FAILURE|error: Nodes (?P<what>\S{1,120}) not responding|srun: error: Node failure on "
        r"(?P<node>\S{1,120})"),
    row("slurm-node-fail",
        r"\bNODE_FAIL\b(?=[^\n]{0,120}?\b\d{1,3}:\d{1,3}\b)"
        r"(?:[^\n]{0,60}?[ |](?P<what>[a-z][\w.-]{0,40}(?:\[[\d,-]{1,80}\]|\d))(?![\w:]))?"),
    row("slurm-rebooted", r"error: Node (?P<what>[\w.-]{1,60}) unexpectedly rebooted"),
    row("slurm-prolog",
        r"Prolog (?:or job env setup failure|failure|hung) on node (?P<what>[\w.-]{1,60})|\[job \d{1,10}\] prolog "
        r"failed status=(?P<status>[\d:]{1,8})"),
    # UFM
    row("ufm-link", r"\[\d{1,5}\] (?:CRITICAL|WARNING|MINOR) [^\n]{0,200}(?P<what>Link went down: [^\n]{4,100})"),
    row("ufm-link",
        r"(?P<what>Symbol error counter rate threshold exceeded|High Symbol BER reported|unhealthy ports list due to "
        r"\w{4,20}|[Uu]nhealthy port: [^\n]{4,80})"),
    row("ufm-node",
        r"\[\d{1,5}\] (?:CRITICAL|WARNING) (?:\[\w{4,20}\] )?(?P<what>[^\n]{0,100}?(?:is Down|Node is not responding|"
        r"Unresponsive|Switch Module Status Fault[^\n]{0,20}))"),
    row("ib-duplicate", r"\[\d{1,5}\] (?:CRITICAL|WARNING) (?P<what>Duplicated GUIDs detected)"),
    # What the BMC logs, in the JSON of Redfish
    row("bmc-device",
        r"The resource property (?P<part>\w{3,60})(?: XID \d{1,3})? has detected errors of type "
        r"'(?P<what>[^'\n]{3,100})"),
    row("bmc-device", r"(?P<what>[\w ]{3,60} has exceeded error threshold|NVSwitch_\d{1,2} NVLink training error)"),
    row("bmc-temperature",
        r"(?P<part>\w{3,60}) sensor crossed a (?P<what>critical (?:high|low) threshold going (?:high|low))"),
    row("bmc-firmware", r"Transfer of image '(?P<what>[\w.-]{3,60})' to '[\w.-]{3,60}' failed"),
    row("bmc-leak", r"(?P<what>\w{0,24}[Ll]eak ?[Dd]etector\w{0,12} leak detected)"),
    row("bmc-unreachable",
        r"Unable to establish IPMI v\d \S{0,4} ?(?:RMCP\+ )?session|Could not open device at /dev/ipmi0|Get Device "
        r"ID command failed"),
    # The host's own log of hardware errors
    row("ras-memory", r"mc_event: [^\n]{0,60}(?P<what>[1-9]\d{0,6} (?:Uncorrected|Fatal) error: [^\n]{4,100})"),
    row("ras-pcie",
        r"(?:aer_event: [^\n]{0,40}|\b\d{1,6} )(?P<bdf>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) "
        r"(?P<what>Uncorrected \((?:Non-)?Fatal\)[^\n]{0,60})"),
    row("ras-memory", r"(?P<what>Uncorrected on DIMM Label\(s\): '[^'\n]{1,80}'[^\n]{0,60} errors: [1-9]\d{0,8})"),
    row("ras-pcie", r"^(?P<what>[1-9]\d{0,6} Uncorrected \((?:Non-)?Fatal\)[^\n]{0,40} errors: [^\n]{3,60})"),
    row("ras-cpu", r"mce_record: [^\n]{0,300}(?P<what>Uncorrected error|Processor context corrupt|Fatal)"),
    row("cxl-error",
        r"\bcxl_aer_uncorrectable_error: memdev[=:](?P<part>mem\d{1,4})\b[^\n]{0,120}?\bstatus: "
        r"'(?P<what>[^'\n]{3,80})"),
    row("cxl-poison",
        r"\bcxl_poison: memdev[=:](?P<part>mem\d{1,4})\b[^\n]{0,200}?\bdpa[=:](?P<what>0x[0-9a-f]{1,16})"),
    # What clouds state of an instance
    row("cloud-event",
        r"\"Code\" ?: ?\"(?P<what>instance-(?:retirement|stop|reboot)|system-(?:reboot|maintenance))\""),
    row("cloud-event", r"\"EventType\" ?: ?\"(?P<what>Reboot|Redeploy|Terminate|Preempt)\""),
    row("cloud-host", r"\bcompute\.instances\.(?P<what>hostError) {1,40}(?:\S{1,200}/)?(?P<part>[\w-]{1,80}) "),
    row("cxl-refused",
        r"^cxl (?:region|memdev|decoder|port): (?!cmd_)\w{4,40}: (?P<what>(?:\w{3,20}: )?(?:[Ff]ailed to |no active |"
        r"unable to |could not |invalid )[^\n]{4,100})"),
    row("ras-memory", r"Offlining page at (?P<what>0x[0-9a-f]{4,16}) failed"),
)  # fmt: skip
