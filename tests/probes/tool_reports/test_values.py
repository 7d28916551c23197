"""Values that state trouble by their words, in outputs that no reader has: labels, cells, rows and lists."""

from __future__ import annotations

import pytest

from probes.sources.identify import identify_command
from probes.tool_reports.sentences.unexplained import list_unexplained

# line -> what is reported of it: the code, the part, words of what it states
STATED = {
    "Fan tray health: FAILED (2 of 6 fans)": ("value-state", None, "health: FAILED"),
    "GPU[2] : Clock Status: THROTTLED": ("value-state", "NVIDIA 2", "Clock Status: THROTTLED"),
    '{"slot":"x","gpu_index":6,"health":"Critical"}': ("value-state", "NVIDIA 6", "health: Critical"),
    "fabric=rail2 state=HEALTH_DEGRADED_RATE": ("value-state", "rail2", "HEALTH_DEGRADED_RATE"),
    "Port module status .......... UNPLUGGED": ("value-state", None, "UNPLUGGED"),
    "Fan Fault : true": ("value-state", None, "Fan Fault: true"),
    "link verdict: replace cable": ("value-state", None, "replace cable"),
    "Rx Power lane 2 (port 4): -40.0": ("value-state", "port 4", "-40.0"),
    "coolant flow: LOW 11 l/min": ("value-state", None, "LOW"),
    "nvidia-peermem loaded ......... NO": ("value-state", None, "NO"),
    "PCI fatal errors: 4": ("value-count", None, "4"),
    "module rx_los: 0x3": ("value-count", None, "0x3"),
    "nvme7 media_errors : 12": ("value-count", "nvme7", "12"),
    "NVLinks: 16/18": ("value-below", None, "16/18"),
    "Link Width ...... x8 (max x16)": ("value-below", None, "x8"),
    "module temp 91.5 C (crit = 90.0)": ("value-below", None, "91.5"),
    "RxPower -14.8 dBm (low alarm -12.0) of port 4": ("value-below", "port 4", "-14.8"),
    "nvlink_bw expected=450 measured=212": ("value-below", None, "measured: 212, expected: 450"),
    "8 gpus expected, 7 visible": ("value-below", None, "7 visible"),
    "check of gpus FAIL (7 != 8)": ("value-below", None, "7 != 8"),
    "nvme2: link x2 (x4 capable)": ("value-below", "nvme2", "x2"),
    "tray 4  good  good  NOK  good": ("value-state", "tray 4", "NOK"),
    "0000:5e:00.0  16GT/s x16 DOWNGRADED": ("value-state", "0000:5e:00.0", "DOWNGRADED"),
    "disks: 46 up, 2 down": ("value-state", None, "46 up, 2 down"),
    "storage: 15 of 16 servers online": ("value-below", None, "15 of 16"),
    "osd: 96 osds: 94 up": ("value-below", None, "94 up"),
    "raid state : active, degraded": ("value-state", None, "degraded"),
    "GPU temps (C): 61 62 60 63 97 61": ("value-odd", None, "number 4: 97, the others 61.5"),
    "GPU 3 hbm_thermal_violation: 88.4 %": ("value-state", "NVIDIA 3", "88.4 %"),
    "| 5. Xe Link Port | Status: Critical |": ("value-state", None, "5. Xe Link Port: Status: Critical"),
    "DCBX Oper status is Configuration Mismatch": ("value-state", None, "Configuration Mismatch"),
    "nvlink bw GB/s: g0=371 g1=370 g2=118 g3=372": ("value-odd", None, "g2: 118, the others 370.5"),
}
CALM = (
    "GPU health policy: fail",
    "gpu on_error = critical",
    "port log level: error",
    "max link errors: 10",
    "link errors: 0",
    "GPU 3 ppt_violation: 88.4 %",
    "GPU 3 hbm_thermal_violation: 2 %",
    "| 5. Xe Link Port | Status: OK |",
    "PFC Oper status is init",
    "PFC status: no mismatch",
    "disks: 48 up, 0 down",
    "switch ports: 30 up, 34 down",
    "storage: 16 of 16 servers online",
    "raid state : active, checking",
    "NodeName=gn1 CPUs=8 SocketsPerBoard=1 RealMemory=900 Gres=gpu:8",
    "GPUs: 8/8",
    "GPU memory used: 3/80",
    "PCIe Gen (cur/max): 1/5",
    "GPU clock 345 MHz (max 1980)",
    "fan speed 30 % (max 100)",
    "module temp 51 C (high alarm 75.0)",
    "gpu correctable errors: 12",
    "Subsystem: Red Hat, Inc NIC",
    "GPU reported health: NVML_NO_ERROR",
    "Fan Fault : false",
    "port status: up",
    'node_disks{device="md0",state="failed"} 0',
    "nvlink_bw expected=450 measured=448",
    "GPU temps (C): 41 42 40 43 55 41",
    "GPU used MiB: 0 0 0 431 0 0",
    "does the port state: down matter?",
    "if link state: failed, replace the cable",
    "shutdown_on_leak: true",
    "gpu color: red",
    "NIC_ASYNC_ERROR_HANDLING=1",
    "883002 relax batch gres/gpu=1 FAILED 2:0",
    "a report without parts: failed",
    "Users=(null) Accounts=gpu Licenses=(null) State=INACTIVE",  # a reservation
)


def _stated(text: str) -> list[tuple[str, str | None, str]]:
    return [(report.code, report.subject, dict(report.detail)["what"]) for report in list_unexplained(text)]


@pytest.mark.parametrize("line", STATED)
def test_a_value_that_states_trouble_names_its_part(line: str) -> None:
    code, part, words = STATED[line]
    found = [row for row in _stated(f"{line}\n") if row[0] == code]
    assert [part] == [row[1] for row in found]
    assert words in found[0][2]
    assert (("error", "of", "program"),) == identify_command(line)


@pytest.mark.parametrize("line", CALM)
def test_a_value_that_states_none_is_left_out(line: str) -> None:
    assert [] == _stated(f"{line}\n")


def test_labels_below_a_heading_are_of_its_part() -> None:
    text = "NIC report\nGPU 4\n  link state: ok\nGPU 5\n  health: BAD\n"
    assert [("value-state", "NVIDIA 5", "health: BAD")] == _stated(text)
    far = "GPU 4\n" + "idle: 1\n" * 61
    assert [("value-state", None, "health: BAD")] == _stated(f"{far}health: BAD\n")


def test_a_port_that_was_switched_off_is_no_fault() -> None:
    text = 'interface ethernet-1/3 {\n  description "n7 rail5"\n  admin-state %s\n  oper-state down\n}\n'
    assert [] == _stated(text % "disable")
    assert [("value-state", "ethernet-1/3", "oper-state: down")] == _stated(text % "enable")


def test_a_session_without_a_peer_is_compared_though_it_has_no_name() -> None:
    rows = "".join(f"leaf{n}(Ethernet{4 * n}) 4 65101 100 1d02h 12\n" for n in range(4))
    text = f"Neighbor V AS MsgRcvd Up/Down State/PfxRcd\n{rows}%s\n"
    assert [] == _stated(text % "Ethernet40 4 65109 12 1d02h 2")
    assert ["Ethernet40"] == [row[1] for row in _stated(text % "Ethernet40 4 0 0 never Idle")]


def test_each_object_of_json_is_of_its_own_part() -> None:
    text = '{"gpus":[{"index":0,"state":"ok"},{"index":5,"state":"lost"}],"nics":[{"name":"mlx5_4","health":"poor"}]}'
    assert [("NVIDIA 5", "state: lost"), ("mlx5_4", "mlx5_4: health: poor")] == [row[1:] for row in _stated(text)]


def test_a_record_is_shown_with_the_host_that_it_is_of() -> None:
    text = "host=a1 gpu_count=8/8 nics=4/4\nhost=a2 gpu_count=7/8 nics=4/4\n"
    assert [("value-below", None, "a2: gpu_count: 7/8")] == _stated(text)


def test_a_value_below_what_another_line_calls_the_most() -> None:
    lines = "Current Link Width : x4\n", "Maximum Link Width : x16\n"
    for text in ("".join(lines), "".join(reversed(lines))):
        assert [("value-below", None, "Current Link Width: x4; Maximum Link Width: x16")] == _stated(text)
    assert [] == _stated("Current Link Width : x16\nMaximum Link Width : x16\n")
    assert [] == _stated("Current Link Speed : 5 GT/s\nMaximum Link Speed : 32 GT/s\n")


def test_many_ports_that_are_down_are_not_used() -> None:
    assert 2 == len(_stated("".join(f"port {at} link state: down\n" for at in (1, 2))))
    assert [] == _stated("".join(f"port {at} link state: down\n" for at in range(9)))


TABLE = "gpu  expected  active  crc  errors\n0    18        18      0    0\n1    18        18      0    0\n"


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("2    18        18      0    0", []),
        ("2    18        16      0    0", [("value-below", "NVIDIA 2", "gpu 2: active 16, expected 18")]),
        ("2    18        18      0    9", [("value-count", "NVIDIA 2", "gpu 2: errors 9")]),
    ],
)
def test_cells_are_judged_by_the_name_of_their_column(row: str, found: list[tuple[str, str, str]]) -> None:
    assert found == _stated(f"{TABLE}{row}\n")
    commas, bars = (",".join(line.split()) for line in (TABLE + row).splitlines()), ""
    assert found == _stated("\n".join(commas))
    bars = "\n".join(f"| {' | '.join(line.split())} |" for line in (TABLE + row).splitlines())
    assert found == _stated(bars)


def test_counts_that_most_rows_have_are_no_fault() -> None:
    assert [] == _stated("port  up  errors\np1    1   4\np2    1   9\np3    1   2\n")


def test_a_state_that_one_row_has_alone() -> None:
    text = "phase  volts  breaker\nL1  239  closed\nL2  0  open\nL3  240  closed\nL4  239  closed\n"
    assert [("value-odd", None, "phase L2: volts 0, the others 239; breaker open, the others closed")] == _stated(text)
    assert [] == _stated(text.replace("0  open", "239  closed"))
    assert [] == _stated("node  state  gpus\nn1  idle  8\nn2  alloc  8\nn3  idle  8\nn4  idle  8\n")


def test_a_number_that_is_far_from_all_others() -> None:
    text = "target  write_bw  lat_ms\nm1  2210  4.1\nm2  2195  4.0\nm3  38  2961\nm4  2230  4.2\nport\n"
    far = "target m3: write_bw 38, the others 2202.5; lat_ms 2961, the others 4.15"
    assert [far] == [row[2] for row in _stated(text)]
    assert [] == _stated(text.replace("38  2961", "2188  4.3"))
    assert [] == _stated("a closed fabric ticket  nic_ms  fixed\nm1  4  y\nm2  5  y\nm3  9999  y\nm4  4  y\n")


def test_one_row_of_many_alike() -> None:
    rows = "".join(f"rail{at} mlx5_{at} {'200G' if at == 2 else '400G'} ok\n" for at in range(4))
    assert [("value-odd", "rail2", "rail2: 200G, the others 400G")] == _stated(rows)
    assert [] == _stated(rows.replace("200G", "400G"))
    states = "".join(f"import {at} state: {'DISC' if at == 3 else 'FULL'}\n" for at in range(5))
    assert ["import 3: state DISC, the others FULL"] == [row[2] for row in _stated(f"lustre\n{states}")]


def test_numbers_below_a_heading_of_what_they_are() -> None:
    text = '"fabric_busbw_by_pair": {\n "q1-q2": 371.8,\n "q2-q3": 22.9,\n "q3-q4": 370.1,\n "q4-q5": 372}\n'
    assert ["q2-q3: 22.9, the others 370.95"] == [row[2] for row in _stated(text)]
    assert [] == _stated(text.replace("busbw", "used"))


ROWS = (("FAN1", "11 240", "80 %"), ("FAN2", "11 310", "80 %"), ("FAN3", "210", "80 %"), ("FAN4", "11 200", "80 %"))
TABLE_ROWS = (("fan", "rpm", "duty"), *ROWS)
FORMS = {
    "bars": "\n".join(f"| {' | '.join(row)} |" for row in TABLE_ROWS),
    "box": "\n".join(["┌───┐", *(f"│ {' │ '.join(row)} │" for row in TABLE_ROWS), "└───┘"]),
    "latex": "\n".join(f"{' & '.join(row)} \\\\".replace("%", "\\%") for row in TABLE_ROWS),
    "html": "".join(f"<tr><td>{'</td><td>'.join(row)}</td></tr>\n" for row in TABLE_ROWS),
    "separated": "\n".join('"' + '";"'.join(row) + '"' for row in TABLE_ROWS),
    "wide": "\n".join("   ".join(row) for row in TABLE_ROWS),
    "keys": "\n".join(f"fan={name} rpm={rpm.replace(' ', '')} duty={duty[:2]}" for name, rpm, duty in ROWS),
    "records": "\n\n".join(f"fan: {name}\nrpm: {rpm}\nduty: {duty}" for name, rpm, duty in ROWS),
    "sections": "\n\n".join(f"[{name}]\nrpm = {rpm.replace(' ', '_')}\nduty = {duty}" for name, rpm, duty in ROWS),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_odd_row_of_a_table_in_any_form(form: str) -> None:
    ((code, _, what),) = _stated(f"fans of a server\n{FORMS[form]}\n")
    assert code == "value-odd"
    assert what.startswith("FAN3: rpm 210, the others 112")


def test_a_matrix_has_the_row_that_is_far() -> None:
    lines = ["pcie GB/s", "     g0    g1    g2    g3    g4"]
    cells = [["-" if a == b else "21.3" if 3 in (a, b) else "391.2" for b in range(5)] for a in range(5)]
    lines += [f"g{at}  {'  '.join(row)}" for at, row in enumerate(cells)]
    assert ["g3"] == [row[2].partition(":")[0] for row in _stated("\n".join(lines))]


def test_limits_in_columns_of_their_own() -> None:
    rows = "name | reading | unit | lo_crit | up_crit\nP12V | {} | Volts | 11.04 | 12.96\n"
    rows += "P5V | 5.02 | Volts | 4.60 | 5.40\nVR1_Temp | 62 | C | na | {}\nVR2_Temp | 62 | C | na | 110\n"
    assert [] == _stated(rows.format("12.08", "110"))
    assert ["P12V: reading 10.61, lo_crit 11.04"] == [row[2] for row in _stated(rows.format("10.61", "110"))]
    assert ["VR1_Temp: reading 62, up_crit 60"] == [row[2] for row in _stated(rows.format("12.08", "60"))]


def test_light_is_compared_as_a_difference() -> None:
    powers = enumerate((0.8, 1.1, -9.3, 0.2))
    rows = "port,rx_power_dBm,vcc\n" + "".join(f"swp{at},{power},3.3\n" for at, power in powers)
    assert ["swp2: rx_power_dBm -9.3"] == [row[2] for row in _stated(rows)]
    assert [] == _stated(rows.replace("-9.3", "-0.9"))


ODD_TEXTS = {  # a text with one odd row -> what is noted of it
    "a log": (
        "".join(f"2026-01-0{at} 10:00:00 INFO mon gpu{at} sm_viol={881 if at == 2 else 0} t=1\n" for at in range(1, 5)),
        "gpu2: sm_viol 881, the others 0",
    ),
    "samples": (
        "".join(f'x_fan_rpm{{host="b{at}",fan="F1"}} {0 if at == 3 else 9100 + at}\n' for at in range(4)),
        "b3 F1: x fan rpm 0, the others 9100",
    ),
    "keys": (
        "".join(f"gpu_{at}_throttle={'HW' if at == 1 else 'NONE'}\n" for at in range(4)),
        "gpu 1: throttle HW",
    ),
    "statsd": (
        "".join(f"fab.busbw.n{at}:{98 if at == 1 else 371}|g\n" for at in range(4)),
        "n1: fab busbw 98, the others 371",
    ),
    "pairs in a line": ("switch temps: SW-1 62C, SW-2 63C, SW-3 104C, SW-4 61C\n", "SW 3: 104C, the others 62.5"),
    "a title with the unit": (
        "step breakdown (ms)\nhost fwd comm\n" + "".join(f"n{at} 41 {240 if at == 2 else 12}\n" for at in range(4)),
        "host n2: comm 240, the others 12",
    ),
    "a column for each host": (
        "check  n1  n2  n3  n4\ngemm TFLOPS  781  779  402  783\nh2d GB/s  54  55  54  54\nlinks  8  8  8  8\n",
        "n3: gemm TFLOPS 402, the others 780",
    ),
    "hosts over time": (
        '"Time","q5 busbw","q6 busbw","q7 busbw","q8 busbw"\n'
        + "".join(f'"10:0{at}","371","370","112","371"\n' for at in range(3)),
        "q7 busbw: 112, the others 370.5",
    ),
    "three rows": ("ib GB/s\nn1 46.1\nn2 46.0\nn3 11.9\n", "ib n3: GB/s 11.9, the others 46"),
    "a matrix of loss": (
        "% loss\n    m1  m2  m3  m4\nm1  -  0.0  2.1  0.0\nm2  0.0  -  1.9  0.0\n"
        "m3  2.2  2.0  -  2.4\nm4  0.0  0.1  2.0  -\n",
        "m3: 2.2, the others 0",
    ),
    "a matrix of states": (
        "p2p\n   g0 g1 g2 g3\n"
        + "".join(f"g{a} {' '.join('0' if 2 in (a, b) else '1' for b in range(4))}\n" for a in range(4)),
        "g2: 0, the others 1",
    ),
    "a mount": ("nfs\n/scratch  0.4 ms\n/home  0.4 ms\n/data  612 ms\n/opt  0.4 ms\n", "/data: ms 612, the others 0.4"),
    "errors that are rare": ("ecc\nslot CE_24h\nA1 0\nB1 2\nC1 1893\nD1 0\n", "slot C1: CE_24h 1893, the others 0"),
    "a rate of errors": ("ber\np1 1e-13\np2 3e-6\np3 2e-13\np4 1e-13\n", "p2: 3e-6, the others 1e-13"),
    "a number of the title": (
        "TFLOPS of each GPU\n" + "".join(f"{at}: {331 if at == 2 else 650}\n" for at in range(4)),
        "GPU 2: 331, the others 650",
    ),
    "a word": (
        "gpu_host test\n" + "".join(f"n{at}: {'rejected' if at == 2 else 'ok'} 3\n" for at in range(4)),
        "n2: rejected, the others ok",
    ),
    "what is not there": (
        "node  scratch  gpfs\n" + "".join(f"n{at}  {'not ' if at == 1 else ''}mounted  mounted\n" for at in range(4)),
        "node n1: scratch not mounted, the others mounted",
    ),
    "what one expects": (
        "svc wanted actual nic\na active active 1\nb active failed 1\nc active active 1\n",
        "svc b: actual failed, wanted active",
    ),
    "versions": (
        "host bios gpus\n" + "".join(f"n{at} 2.{9 if at == 3 else 14} 8\n" for at in range(5)),
        "host n3: bios 2.9",
    ),
    "objects by name": (
        '{"trays": {' + ", ".join(f'"t{at}": {{"gpus": {3 if at == 2 else 4}, "nic": 1}}' for at in range(4)) + "}}",
        "entry t2: gpus 3, the others 4",
    ),
    "numbers by name": (
        '{"unit": "Gb/s", "bw": {' + ", ".join(f'"n{at}": {102.5 if at == 2 else 387}' for at in range(4)) + "}}",
        "entry n2: bw 102.5, the others 387",
    ),
    "hosts before a label": (
        "".join(f"c{at}: HugePages_Total: {0 if at == 3 else 512}\n" for at in range(1, 6)),
        "c3: HugePages_Total 0, the others 512",
    ),
    "a pair of places": (
        "".join(
            f"rank {at}: GPU{at} numa={at // 3} cpus: {'0-31' if at != 4 else '32-63'}\n".replace(
                "numa=1 cpus: 0-31", "numa=1 cpus: 64-95"
            )
            for at in range(6)
        ).replace("32-63", "0-31"),
        "rank 4: numa 1: cpus 0-31, others 64-95",
    ),
    "a setting in bars": (
        "|gpu|name|mig.mode.current|\n|-|-|-|\n"
        + "".join(f"|{at}|A100|{'Enabled' if at == 2 else 'Disabled'}|\n" for at in range(5)),
        "gpu 2: mig.mode.current Enabled, the others Disabled",
    ),
    "pairs": (
        "port bw GB/s\n" + "".join(f"n{a} n{b} {11 if 3 in (a, b) else 45}\n" for a in range(5) for b in range(a)),
        "n3: GB/s 11, the others 45",
    ),
    "pairs with a mark": (
        "latency us\n" + "".join(f"n{a}->n{b} {90 if 3 in (a, b) else 2}\n" for a in range(5) for b in range(a)),
        "n3: us 90, the others 2",
    ),
    "one pair": (
        "port bw GB/s\n" + "".join(f"n{a} n{b} {11 if (a, b) == (3, 1) else 45}\n" for a in range(5) for b in range(a)),
        "n3 n1: GB/s 11, the others 45",
    ),
    "states of a scheduler": (
        "".join(f"node{at} {'down,offline' if at == 2 else 'free'} {'-' if at == 2 else at}\n" for at in range(4)),
        "node2: down,offline",
    ),
    "a count of grep": (
        "$ for n in $(cat nodes); do ssh $n 'lspci | grep -c NVMe'; done\n"
        + "".join(f"gn{at} {7 if at == 2 else 8}\n" for at in range(4)),
        "gn2: 7, the others 8",
    ),
    "an array": ("md3 : active raid1 sda1[0] sdb1[1](F)\n   523264 blocks [2/1] [U_]\n", "md3: 1 of 2 members [U_]"),
    "a member": ("md3 : active raid1 sda1[0] sdb1[1](F)\n", "md3: sdb1[1](F)"),
    "an error in place of values": (
        "".join(f"fs-OST{at}{': Input/output error' if at == 2 else '   90T  60%'}\n" for at in range(4)),
        "fs-OST2: Input/output error",
    ),
    "elements": (
        "".join(f"<psu><name>P{at}</name><volts>{0.1 if at == 3 else 54.1}</volts></psu>\n" for at in range(1, 5)),
        "name P3: volts 0.1, the others 54.1",
    ),
}


@pytest.mark.parametrize("form", ODD_TEXTS)
def test_the_odd_row_of_other_forms(form: str) -> None:
    text, what = ODD_TEXTS[form]
    assert what in [value[2][: len(what)] for value in _stated(text)]


EVEN_TEXTS = (
    "model links\n" + "".join(f"gpu n{at} {'H100 18' if at == 3 else 'A100 12'}\n" for at in range(4)),
    "nic role GB/s\n" + "".join(f"e{at} {'mgmt 0.1' if at == 3 else 'rail 46'}\n" for at in range(4)),
    "gpu clocks util\n" + "".join(f"{at} {'345 0' if at == 3 else '1980 99'}\n" for at in range(4)),
    "size(B) busbw\n64 0.1\n1024 1.4\n1048576 171\n1073741824 371\n",
    "nic latency us\np50 2\np90 2\np99 2\np99.9 90\n",
    "rack power budget: R1=40 R2=40 R3=40 R4=17\n",
    "gpu processes\n" + "".join(f"gpu{at} {0 if at == 2 else 3}\n" for at in range(4)),
    "users by node\nn1 3\nn2 2\nn3 41\nn4 1\n",
    "pfc counters\nprio 0: 0\nprio 1: 0\nprio 2: 0\nprio 3: 41200\n",
    "nic sriov_vfs\neth0 0\neth1 8\neth2 8\neth3 8\n",
    "alert state nic\nA resolved 1\nB inactive 1\nC inactive 1\n",
    "node rx_gbps\nn1 88\nn2 88\nn3 1\nn4 88\n",
    "numa distance nic\nnode 0 1 2\n0 10 32 32\n1 32 10 32\n2 32 32 10\n",
    "".join(f"rank {at}: GPU{at} numa={at // 2} cpus: {at}-{at}\n" for at in range(4)),
    "".join(f"rank {at}: GPU{at} numa={at // 3}\n" for at in range(4)),
    "port bw GB/s\n" + "".join(f"n{a} n{b} {45 if a // 3 == b // 3 else 30}\n" for a in range(6) for b in range(a)),
    "".join(f"node{at} {'job-busy' if at == 2 else 'free'} {at}\n" for at in range(4)),
    "NodeName=gn[1-3] CPUs=9\nNodeName=gn7 CPUs=8 SocketsPerBoard=1\n",
    "md3 : active raid1 sda1[0] sdb1[1]\n   523264 blocks [2/2] [UU]\n",
    "$ for n in $(cat nodes); do ssh $n 'pgrep python | wc -l'; done\n"
    + "".join(f"gn{at} {7 if at == 2 else 8}\n" for at in range(4)),
    "node gpus\nn1 8\nn2 8\nn3 8\nlogin 0\n",
    "ber of nic\np1 1e-13\np2 3e-13\np3 2e-13\np4 1e-12\n",
    "snr_metric gpu\n" + "".join(f"lane {at} {498960 - 9000 * at}\n" for at in range(4)),
)


@pytest.mark.parametrize("text", EVEN_TEXTS)
def test_what_role_load_and_size_explain_is_not_odd(text: str) -> None:
    assert [] == _stated(text)


def test_more_than_four_values_of_a_row_are_counted() -> None:
    heading = "gpu " + " ".join(f"t{at}_bw" for at in range(6))
    rows = "".join(f"\n{at} " + " ".join(["9" if at == 2 else "46"] * 6) for at in range(4))
    ((_, _, what),) = _stated(heading + rows)
    assert what.endswith("; 2 more")


@pytest.mark.parametrize("heading", ["fan used MiB", "fan before after", "fan jobs load", "fan temp_C old"])
def test_what_differs_by_use_or_time_is_not_compared(heading: str) -> None:
    assert [] == _stated(f"{heading}\n" + "".join(f"F{at} {70 if at == 2 else 40} 4\n" for at in range(5)))


def test_units_and_ratios_in_rows_without_a_heading() -> None:
    rows = "".join(f"gpu{at} [##] 100%   {71 if at == 4 else 390 + at} W   74.1\n" for at in range(6))
    assert ["gpu4: W 71, the others 391.5"] == [row[2] for row in _stated(rows)]
    rows = "".join(f"- dpu-{at}: stage {2 if at == 1 else 6}/6\n" for at in range(5))
    assert ["dpu-1: stage 2/6, the others 6/6"] == [row[2] for row in _stated(rows)]
