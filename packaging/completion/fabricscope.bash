# bash completion for fabricscope, written by `make completion` from its commands

_fabricscope_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }

_fabricscope_files() {
    compopt -o filenames
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen "$1" -- "$cur")
}

_fabricscope_list() {
    local before=''
    [[ $cur == *,* ]] && before=${cur%,*},
    compopt -o nospace
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$1" -- "${cur##*,}")
}

_fabricscope() {
    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command='' place=0 word i skip=
    COMPREPLY=()
    if [[ $cur == = ]]; then
        cur=''
    elif [[ $before == = ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $skip ]]; then
            [[ $word == = ]] || skip=
        elif [[ $word == -* ]]; then
            case "$command $word" in
                "scan --source" | "scan --report" | "scan --config" | "scan -o" | "scan --output" | "scan --capture" | "check --source" | "check --report" | "check --config" | "capture -o" | "capture --output" | "capture --source" | "diff -o" | "diff --output" | "diff --config" | "export --source" | "export --report" | "export --config" | "export -o" | "export --output" | "ship --token-file" | "ship --cert" | "ship --key" | "ship --ca" | "ship --credentials" | "ship --config" | "watch --config" | "watch -o" | "watch --output" | "netbox plan --token-file" | "netbox plan --ca" | "netbox plan --source" | "netbox plan --report" | "netbox plan -o" | "netbox plan --output" | "netbox apply --token-file" | "netbox apply --ca" | "netbox apply --source" | "netbox apply --report" | "netbox apply -o" | "netbox apply --output" | "profile learn --source" | "profile learn --report" | "profile learn -o" | "profile learn --output" | "fleet summary -o" | "fleet summary --output" | "fleet findings -o" | "fleet findings --output" | "fleet outliers -o" | "fleet outliers --output" | "fleet drift -o" | "fleet drift --output" | "fleet duplicates -o" | "fleet duplicates --output" | "fleet topology --fabric" | "fleet topology -o" | "fleet topology --output" | "fleet cables --fabric" | "fleet cables --plan" | "fleet cables -o" | "fleet cables --output" | "fleet html --fabric" | "fleet html -o" | "fleet html --output" | "fleet query -o" | "fleet query --output" | "fleet export -o" | "fleet export --output" | "scan --root" | "scan --state-dir" | "check --root" | "check --state-dir" | "capture --root" | "export --root" | "export --state-dir" | "install-units --prefix" | "install-units --unit-dir" | "ship --spool" | "ship --state-dir" | "watch --root" | "watch --state-dir" | "profile learn --root" | "fleet html --nodes-dir" | "scan --only" | "scan --skip" | "check --only" | "check --skip" | "export --only" | "export --skip" | "watch --only" | "watch --skip" | "scan --timeout" | "scan --interval" | "check --timeout" | "check --interval" | "check --max-age" | "capture --timeout" | "diff --timeout" | "export --timeout" | "export --interval" | "install-units --exec" | "ship --to" | "ship --method" | "ship --compress" | "ship --endpoint" | "ship --region" | "ship --spool-limit" | "ship --spool-count" | "ship --timeout" | "watch --timeout" | "watch --settle" | "watch --every" | "netbox plan --url" | "netbox plan --site" | "netbox plan --role" | "netbox plan --device-type" | "netbox plan --timeout" | "netbox apply --url" | "netbox apply --site" | "netbox apply --role" | "netbox apply --device-type" | "netbox apply --limit-changes" | "netbox apply --timeout" | "profile learn --name" | "profile learn --timeout" | "fleet ingest --dataset" | "fleet ingest --cluster" | "fleet ingest --jobs" | "fleet ingest --wait" | "fleet summary --dataset" | "fleet summary --engine" | "fleet summary --where" | "fleet summary --stale-after" | "fleet findings --dataset" | "fleet findings --engine" | "fleet findings --where" | "fleet outliers --dataset" | "fleet outliers --engine" | "fleet outliers --where" | "fleet outliers --majority" | "fleet outliers --fewest" | "fleet drift --since" | "fleet drift --dataset" | "fleet drift --engine" | "fleet drift --where" | "fleet duplicates --dataset" | "fleet duplicates --engine" | "fleet duplicates --where" | "fleet topology --dataset" | "fleet topology --engine" | "fleet topology --nodes" | "fleet cables --dataset" | "fleet cables --engine" | "fleet html --dataset" | "fleet html --engine" | "fleet html --where" | "fleet html --rack" | "fleet html --title" | "fleet html --stale-after" | "fleet html --since" | "fleet query --dataset" | "fleet export --dataset" | "fleet export --engine" | "fleet export --where" | "fleet load --engine" | "fleet load --dataset" | "scan --profile" | "check --profile" | "diff --profile" | "export --profile" | "watch --profile" | "scan --format" | "check --fail-on" | "check --as" | "diff --format" | "rules --format" | "netbox plan --format" | "netbox apply --format" | "install-units --with" | "watch --format" | "fleet summary --format" | "fleet findings --format" | "fleet outliers --format" | "fleet drift --format" | "fleet duplicates --format" | "fleet cables --format" | "fleet query --format" | "fleet topology --format") skip=1 ;;
            esac
        else
            case "$command${command:+ }$word" in
                "scan" | "check" | "capture" | "diff" | "export" | "rules" | "explain" | "schema" | "install-units" | "ship" | "watch" | "netbox" | "netbox plan" | "netbox apply" | "profile" | "profile list" | "profile show" | "profile learn" | "fleet" | "fleet ingest" | "fleet summary" | "fleet findings" | "fleet outliers" | "fleet drift" | "fleet duplicates" | "fleet topology" | "fleet cables" | "fleet html" | "fleet query" | "fleet export" | "fleet load") command=$command${command:+ }$word ;;
                *) ((place++)) ;;
            esac
        fi
    done
    case "$command $before" in
        "scan --source" | "scan --report" | "scan --config" | "scan -o" | "scan --output" | "scan --capture" | "check --source" | "check --report" | "check --config" | "capture -o" | "capture --output" | "capture --source" | "diff -o" | "diff --output" | "diff --config" | "export --source" | "export --report" | "export --config" | "export -o" | "export --output" | "ship --token-file" | "ship --cert" | "ship --key" | "ship --ca" | "ship --credentials" | "ship --config" | "watch --config" | "watch -o" | "watch --output" | "netbox plan --token-file" | "netbox plan --ca" | "netbox plan --source" | "netbox plan --report" | "netbox plan -o" | "netbox plan --output" | "netbox apply --token-file" | "netbox apply --ca" | "netbox apply --source" | "netbox apply --report" | "netbox apply -o" | "netbox apply --output" | "profile learn --source" | "profile learn --report" | "profile learn -o" | "profile learn --output" | "fleet summary -o" | "fleet summary --output" | "fleet findings -o" | "fleet findings --output" | "fleet outliers -o" | "fleet outliers --output" | "fleet drift -o" | "fleet drift --output" | "fleet duplicates -o" | "fleet duplicates --output" | "fleet topology --fabric" | "fleet topology -o" | "fleet topology --output" | "fleet cables --fabric" | "fleet cables --plan" | "fleet cables -o" | "fleet cables --output" | "fleet html --fabric" | "fleet html -o" | "fleet html --output" | "fleet query -o" | "fleet query --output" | "fleet export -o" | "fleet export --output") _fabricscope_files -f; return ;;
        "scan --root" | "scan --state-dir" | "check --root" | "check --state-dir" | "capture --root" | "export --root" | "export --state-dir" | "install-units --prefix" | "install-units --unit-dir" | "ship --spool" | "ship --state-dir" | "watch --root" | "watch --state-dir" | "profile learn --root" | "fleet html --nodes-dir") _fabricscope_files -d; return ;;
        "scan --only" | "scan --skip" | "check --only" | "check --skip" | "export --only" | "export --skip" | "watch --only" | "watch --skip") _fabricscope_list "kernel dmi cpu numa pci nvml rdma rdma_netlink netdev ethtool optics dcb lldp ib_fabric modules services limits nccl kernel_log lspci nvidia_smi rdma_tools lsmod"; return ;;
        "scan --timeout" | "scan --interval" | "check --timeout" | "check --interval" | "check --max-age" | "capture --timeout" | "diff --timeout" | "export --timeout" | "export --interval" | "install-units --exec" | "ship --to" | "ship --method" | "ship --compress" | "ship --endpoint" | "ship --region" | "ship --spool-limit" | "ship --spool-count" | "ship --timeout" | "watch --timeout" | "watch --settle" | "watch --every" | "netbox plan --url" | "netbox plan --site" | "netbox plan --role" | "netbox plan --device-type" | "netbox plan --timeout" | "netbox apply --url" | "netbox apply --site" | "netbox apply --role" | "netbox apply --device-type" | "netbox apply --limit-changes" | "netbox apply --timeout" | "profile learn --name" | "profile learn --timeout" | "fleet ingest --dataset" | "fleet ingest --cluster" | "fleet ingest --jobs" | "fleet ingest --wait" | "fleet summary --dataset" | "fleet summary --engine" | "fleet summary --where" | "fleet summary --stale-after" | "fleet findings --dataset" | "fleet findings --engine" | "fleet findings --where" | "fleet outliers --dataset" | "fleet outliers --engine" | "fleet outliers --where" | "fleet outliers --majority" | "fleet outliers --fewest" | "fleet drift --since" | "fleet drift --dataset" | "fleet drift --engine" | "fleet drift --where" | "fleet duplicates --dataset" | "fleet duplicates --engine" | "fleet duplicates --where" | "fleet topology --dataset" | "fleet topology --engine" | "fleet topology --nodes" | "fleet cables --dataset" | "fleet cables --engine" | "fleet html --dataset" | "fleet html --engine" | "fleet html --where" | "fleet html --rack" | "fleet html --title" | "fleet html --stale-after" | "fleet html --since" | "fleet query --dataset" | "fleet export --dataset" | "fleet export --engine" | "fleet export --where" | "fleet load --engine" | "fleet load --dataset") return ;;
        "scan --profile" | "check --profile" | "diff --profile" | "export --profile" | "watch --profile") _fabricscope_words "auto none ascend-a2 dgx-a100 dgx-b200 dgx-b300 dgx-h100 dgx-h200 dgx1v dgx2 gb200-tray gb300-tray gh200 hgx-a100-4 hgx-a100-8 hgx-b200-8 hgx-b300-8 hgx-h100-4 hgx-h100-8 hgx-h200-8 mi300x-8 mi325x-8 p4d.24xlarge p4de.24xlarge p5.48xlarge p5e.48xlarge p5en.48xlarge p6-b200.48xlarge sxm2-v100-8"; _fabricscope_files -f; return ;;
        "scan --format") _fabricscope_words "text json html"; return ;;
        "check --fail-on") _fabricscope_words "warning error critical"; return ;;
        "check --as") _fabricscope_words "nagios npd slurm-prolog"; return ;;
        "diff --format" | "rules --format" | "netbox plan --format" | "netbox apply --format") _fabricscope_words "text json"; return ;;
        "install-units --with") _fabricscope_list "ship watch"; return ;;
        "watch --format") _fabricscope_words "text ndjson"; return ;;
        "fleet summary --format" | "fleet findings --format" | "fleet outliers --format" | "fleet drift --format" | "fleet duplicates --format" | "fleet cables --format" | "fleet query --format") _fabricscope_words "text json csv"; return ;;
        "fleet topology --format") _fabricscope_words "text json svg slurm-conf slurm-yaml topograph nfd"; return ;;
    esac
    if [[ $cur == -* ]]; then
        case $command in
            "") _fabricscope_words "--version --debug -h --help" ;;
            "scan") _fabricscope_words "--source --root --report --only --skip --timeout --state-dir --accept-inventory --interval --config --profile --format -o --output --capture --redact --no-color -q --quiet -v --verbose -h --help" ;;
            "check") _fabricscope_words "--source --root --report --only --skip --timeout --state-dir --accept-inventory --interval --config --profile --fail-on --max-age --as -q --quiet -v --verbose -h --help" ;;
            "capture") _fabricscope_words "-o --output --root --source --timeout --redact -q --quiet -v --verbose -h --help" ;;
            "diff") _fabricscope_words "--format -o --output --timeout --config --profile --no-color -q --quiet -v --verbose -h --help" ;;
            "export") _fabricscope_words "--source --root --report --only --skip --timeout --state-dir --accept-inventory --interval --config --profile -o --output -q --quiet -v --verbose -h --help" ;;
            "rules") _fabricscope_words "--format -h --help" ;;
            "explain") _fabricscope_words "-h --help" ;;
            "schema") _fabricscope_words "-h --help" ;;
            "install-units") _fabricscope_words "--prefix --unit-dir --with --exec --force --print -h --help" ;;
            "ship") _fabricscope_words "--to --method --compress --token-file --cert --key --ca --endpoint --region --credentials --spool --state-dir --spool-limit --spool-count --timeout --config -q --quiet -h --help" ;;
            "watch") _fabricscope_words "--root --only --skip --timeout --settle --every --state-dir --config --profile --format -o --output -q --quiet -v --verbose -h --help" ;;
            "netbox") _fabricscope_words "-h --help" ;;
            "netbox plan") _fabricscope_words "--url --token-file --ca --source --report --create --site --role --device-type --prune --timeout --format -o --output --no-color -h --help" ;;
            "netbox apply") _fabricscope_words "--url --token-file --ca --source --report --create --site --role --device-type --prune --limit-changes --timeout --format -o --output --no-color -h --help" ;;
            "profile") _fabricscope_words "-h --help" ;;
            "profile list") _fabricscope_words "-h --help" ;;
            "profile show") _fabricscope_words "-h --help" ;;
            "profile learn") _fabricscope_words "--source --root --report --name -o --output --timeout -q --quiet -h --help" ;;
            "fleet") _fabricscope_words "-h --help" ;;
            "fleet ingest") _fabricscope_words "--dataset --cluster --jobs --wait -q --quiet -h --help" ;;
            "fleet summary") _fabricscope_words "--dataset --engine --where --stale-after --format -o --output --no-color -h --help" ;;
            "fleet findings") _fabricscope_words "--dataset --engine --where --format -o --output --no-color -h --help" ;;
            "fleet outliers") _fabricscope_words "--dataset --engine --where --majority --fewest --format -o --output --no-color -h --help" ;;
            "fleet drift") _fabricscope_words "--since --dataset --engine --where --format -o --output --no-color -h --help" ;;
            "fleet duplicates") _fabricscope_words "--dataset --engine --where --format -o --output --no-color -h --help" ;;
            "fleet topology") _fabricscope_words "--fabric --dataset --engine --format --nodes --all -o --output --no-color -h --help" ;;
            "fleet cables") _fabricscope_words "--fabric --dataset --engine --plan --format --all -o --output --no-color -h --help" ;;
            "fleet html") _fabricscope_words "--dataset --engine --fabric --where --nodes-dir --rack --title --stale-after --since -o --output -h --help" ;;
            "fleet query") _fabricscope_words "--dataset --format -o --output -h --help" ;;
            "fleet export") _fabricscope_words "--dataset --engine --where -o --output -h --help" ;;
            "fleet load") _fabricscope_words "--engine --dataset -q --quiet -h --help" ;;
        esac
        return
    fi
    case "$command" in
        "") _fabricscope_words "scan check capture diff export rules explain schema install-units ship watch netbox profile fleet" ;;
        "diff") ((place == 0)) && { _fabricscope_files -f; }; ((place == 1)) && { _fabricscope_files -f; } ;;
        "export") ((place == 0)) && { _fabricscope_words "ansible html junit nccl-topo netbox nfd prometheus slurm svg"; } ;;
        "explain") ((place == 0)) && { _fabricscope_words "pcie-device-gone pcie-width-downgraded pcie-speed-downgraded pcie-path-bottleneck pcie-link-down pcie-ends-disagree pcie-slot-limits-card pcie-slower-than-siblings pcie-nic-starved pcie-uplink-oversubscribed pcie-mps-mismatch pcie-mps-small pcie-mps-uneven pcie-tags-off pcie-aspm-on pci-driver-missing pcie-containment gpu-missing gpu-xid gpu-siblings-differ gpu-recovery-needed gpu-p2p-blocked nvlink-inactive nvlink-asymmetric nvlink-speed-low nvlink-matrix-uneven nvlink-path-missing nvlink-bandwidth-mode-reduced nvlink-unused-by-mig nvlink-claimed nvlink-disabled fabric-manager-down fabric-manager-mismatch fabric-incomplete fabric-unhealthy fabric-clique-mixed nvls-unavailable imex-down imex-channel-denied c2c-down gpu-ats-off gpu-memory-numa-missing ib-port-down ib-no-sm ib-rate-degraded ib-rate-mixed ib-pkey-mismatch ib-ar-disabled ib-sharp-not-ready ib-counter-saturated ib-sm-changed ib-rate-unparsed ib-limited-pf ib-subnet-mixed ib-pkey-limited roce-lossy roce-pfc-off roce-class-mismatch roce-trust-pcp-untagged roce-marking-unset roce-nccl-tc-suspect roce-pfc-multi roce-pfc-on-cnp-or-default roce-global-pause roce-pause-and-pfc roce-pfc-nic-asymmetry roce-pfc-switch-mismatch roce-dcbx-firmware-owned roce-headroom-small roce-prio2buffer-shared roce-ets-starved roce-tc-rate-limited roce-vlan-no-egress-map roce-dcb-unreadable roce-ecn-off roce-cnp-class roce-mtu-small roce-mtu-mismatch roce-gid-v1-only roce-no-ip roce-gid-index-wrong roce-nccl-gid-default-old roce-default-mode-v1 roce-netdev-missing roce-lag-on-rails roce-lag-broken roce-speed-degraded roce-link-down roce-fec-wrong roce-module-fault roce-optics-power roce-link-flap roce-fec-ber roce-rt-retrans roce-rt-ack-timeout roce-rt-retry-exceeded roce-rt-rnr roce-rt-duplicates roce-rt-rx-discards roce-rt-pause-received roce-rt-pause-sent roce-rt-pause-storm roce-rt-pause-unanswered roce-rt-icrc roce-rt-crc roce-rt-adaptive-retrans roce-rt-class-usage roce-rt-host-bound roce-rt-congested roce-cnp-ignored roce-rt-soft-loss ib-link-flap ib-symbol-errors ib-link-recovery ib-rcv-errors ib-link-integrity ib-xmit-discards ib-xmit-wait ib-vl15-dropped ib-constraint-errors ib-hwcounter-transport pcie-errors-uncorrectable pcie-errors-correctable pcie-replays pcie-recoveries nvlink-errors c2c-errors nic-fw-mixed ib-mixed-linklayer ofed-inbox-mix affinity-gpu-far-from-nic numa-unknown gdr-no-path gdr-mrrs-small gdr-relaxed-ordering-off gdr-bar1-small gdr-peermem-broken gdr-acs-on-path gdr-iommu-translated gdr-ats-vm gdr-acs-directnic gdr-iommu-group-directnic gdr-datadirect-missing gdr-dmabuf-prereq gdr-legacy-nv-peer-mem gdr-topology-hidden gdr-nic-gpu-ratio gdr-netns-exclusive gdr-soft-rdma device-count-low nvswitch-missing gpu-module-missing profile-differs inventory-lost gdr-disabled-by-env gdr-nccl-conf-syntax gdr-nccl-conf-shadowed gdr-nccl-hca-mismatch gdr-nccl-socket-ifname gdr-nccl-debug-leftover nccl-topo-file-stale gdr-memlock-low gdr-devnodes-missing gdr-shm-small gdr-ibgda-regkey gdr-gdrcopy-missing gdr-gds-not-ready gdr-efa-stack probe-hung"; } ;;
        "ship") { _fabricscope_files -f; } ;;
        "netbox") _fabricscope_words "plan apply" ;;
        "netbox plan") { _fabricscope_files -f; } ;;
        "netbox apply") { _fabricscope_files -f; } ;;
        "profile") _fabricscope_words "list show learn" ;;
        "profile show") ((place == 0)) && { _fabricscope_words "ascend-a2 dgx-a100 dgx-b200 dgx-b300 dgx-h100 dgx-h200 dgx1v dgx2 gb200-tray gb300-tray gh200 hgx-a100-4 hgx-a100-8 hgx-b200-8 hgx-b300-8 hgx-h100-4 hgx-h100-8 hgx-h200-8 mi300x-8 mi325x-8 p4d.24xlarge p4de.24xlarge p5.48xlarge p5e.48xlarge p5en.48xlarge p6-b200.48xlarge sxm2-v100-8"; _fabricscope_files -f; } ;;
        "fleet") _fabricscope_words "ingest summary findings outliers drift duplicates topology cables html query export load" ;;
        "fleet export") ((place == 0)) && { _fabricscope_words "csv parquet json"; } ;;
    esac
}

complete -F _fabricscope fabricscope
