"""Tables that people keep, and values that they compare: what is a fault, and what is usual."""

from __future__ import annotations

import pytest

from probes.host.commands import SHEET, STATED
from probes.sources.identify import identify_command
from probes.text import ParseError
from probes.tool_reports.sentences.compared import find_claims, list_compared
from probes.tool_reports.tables.measured_lines import list_slow_lines
from probes.tool_reports.tables.sheets import has_records, is_sheet, list_sheet_faults


def table(heading: str, *rows: str, mark: str = ",") -> str:
    return "".join(f"{line.replace(',', mark)}\n" for line in (heading, *rows))


def widths(odd: str, mark: str = ",") -> str:
    return table("node,gpu,link_width", *(f"a{n},0,x16" for n in range(1, 5)), odd, mark=mark)


def test_words_above_a_heading_hide_no_table() -> None:
    text = "states  and  links\n" + table("node,gpu,link", "a1,0,up", "a2,0,up", "a3,0,down", mark="    ")
    assert [(report.code, report.subject) for report in list_sheet_faults(text)] == [("sheet-down", "a3 GPU 0")]


@pytest.mark.parametrize("mark", [",", ";", "\t", " | ", "    "])
def test_a_row_that_is_not_as_the_others_is_found_in_any_form(mark: str) -> None:
    text = "Widths of all GPUs:\n\n" + widths("a5,0,x4", mark)
    assert identify_command(text) == (SHEET,)
    assert [(report.code, report.subject) for report in list_sheet_faults(text)] == [("below-width", "a5 GPU 0")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (widths("a5,0,x16"), []),
        (widths("a5,0,x32"), []),
        (widths("storage-5,0,x4"), []),  # of another kind
        (table("host,model,nvlinks", "a1,H100,18", "a2,H100,18", "a3,H100,18", "a4,A100,12"), []),
        (table("host,nvlinks,note", "a1,18,", "a2,18,", "a3,18,", "a4,17,slow"), [("below-count", "a4")]),
        (table("host,nvlinks", "a1,18", "a2,12", "a3,18"), []),  # too few are alike
        (table("port,link speed,neighbor", "1,400G,a1", "2,400G,a2", "3,400G,a3", "4,100G,nfs"), []),
        (table("GPU,max width,width", "0,16,16", "1,16,8"), [("below-width", "GPU 1")]),
        (table("host,busbw", "a1,371", "a2,369", "a3,372", "a4,205"), []),  # of no part that is read here
        (table("host,nccl busbw", "a1,371", "a2,369", "a3,372", "a4,205"), []),
        (table("host,GPU,busbw", "a1,0,371", "a2,0,369", "a3,0,372", "a4,0,205"), [("below-bandwidth", "a4 GPU 0")]),
        (table("host,GPU,driver", "a1,0,570.1", "a2,0,570.1", "a3,0,570.1", "a4,0,565.3"),
         [("sheet-version", "a4 GPU 0")]),
        (table("host,GPU,ECC uncorrected", "a1,0,0", "a2,0,4"), [("sheet-memory", "a2 GPU 0")]),
        (table("server,slot,accelerator,link trained,PCIe errors (UE)", "a1,1,HL-3,yes,0", "a1,2,HL-3,yes,0",
               "a2,1,HL-3,no,7", "a2,2,HL-3,yes,0"), [("sheet-down", "a2 slot 1"), ("sheet-uncorrected", "a2 slot 1")]),
        (table("server,gpu,result", "a1,1,ok", "a1,2,nok"), [("sheet-state", "a1 GPU 2")]),
        (table("host,GPU,ECC corrected", "a1,0,0", "a2,0,4"), []),
        (table("host,GPU,SBE,DBE", "a1,0,9,0", "a2,0,9,1"), [("sheet-memory", "a2 GPU 0")]),
        (table("host,GPU,remap_pending", "a1,0,No", "a2,0,Yes"), [("sheet-pending", "a2 GPU 0")]),
        (table("host,GPU,remap_failed", "a1,0,0", "a2,0,1"), [("sheet-remap-failed", "a2 GPU 0")]),
        (table("host,GPU,xid", "a1,0,-", "a2,0,79"), [("metric-xid", "a2 GPU 0")]),
        (table("host,mlx5 port,state", "a1,1,up", "a2,1,up", "a3,1,down"), [("sheet-down", "a3")]),
        (table("host,hca,state", "a1,mlx5_0,up", "a2,mlx5_0,up", "a3,mlx5_0,down"), [("sheet-down", "a3 mlx5_0")]),
        ("".join(f"dev=mlx5_{n} state={'Init' if n == 2 else 'Active'} width=4x\n" for n in range(5)),
         [("sheet-down", "mlx5_2")]),
        ("".join(f"dev=mlx5_{n} state=Active width={2 if n == 3 else 4}x\n" for n in range(5)),
         [("below-width", "mlx5_3")]),
        ("".join(f"dev=mlx5_{n} state=Active width=4x\n" for n in range(5)), []),
        ("HCA     State   Width\nmlx5_0  Active  4X\nmlx5_1  Down\nmlx5_2  Active  4X\n", [("sheet-down", "mlx5_1")]),
        (table("host,hca,state", "a1,mlx5_0,down", "a2,mlx5_0,down", "a3,mlx5_0,up"), []),
        (table("GPU,bdf,width", "H100,0000:1b:00.0,16", "H100,0000:5e:00.0,16", "H100,0000:9a:00.0,16",
               "H100,0000:cf:00.0,8"), [("below-width", "H100 0000:cf:00.0")]),
        (table("node,GPUs,GPUs used", "a1,8,8", "a2,8,8", "a3,8,8", "a4,8,4"), []),  # by a job, or none
        (table("NAME,GPU,EFA", "a1,8,32", "a2,8,32", "a3,8,32", "a4,7,32"), [("below-count", "a4")]),
        (table("NAME,GPU,EFA", "a1,8,32", "a2,8,32", "a3,8,32", "a4,8,31"), [("below-count", "a4")]),
        (table("node,GPU,width", "a1,2,x16", "a2,2,x16", "a3,2,x16", "a4,1,x16"), [("below-count", "a4")]),
        (table("Node,Available(GPUs),Used(GPUs)", "gpu-1,2,0", "gpu-2,0,2", "gpu-3,0,0"), [("below-count", "gpu-3")]),
        (table("Node,Available(GPUs),Used(GPUs)", "a1,2,0", "a2,0,0"), []),  # it may have none
        (table("Node,Available(GPUs)", "gpu-1,2", "gpu-2,0", "gpu-3,0"), []),  # they may be in use
        (table("NODE,GPU,EFA", "dgx-1,8,4", "dgx-2,8,4", "dgx-3,8,4", "dgx-4,<none>,4"), [("below-count", "dgx-4")]),
        (table("PCI address,health,GPU", "0000:1B:00.0,OK,a", "0000:5E:00.0,Failed,b"),
         [("sheet-state", "0000:5e:00.0 b")]),
    ],
)  # fmt: skip
def test_what_a_row_states(text: str, expected: list[tuple[str, str]]) -> None:
    reports = list_sheet_faults(text) if is_sheet(text) or has_records(text) else []
    assert expected == [(report.code, report.subject) for report in reports]


@pytest.mark.parametrize(
    "text",
    [
        "host,gpu\n",
        table("NPU,port,link", *4 * ("0,4,DOWN", "0,4,UP")),
        "Dear all, GPU 3 fails\n",
        table("name,state", "a,up", "b,down"),
    ],
)
def test_a_text_without_such_a_table_is_refused(text: str) -> None:
    assert not is_sheet(text)
    with pytest.raises(ParseError):
        list_sheet_faults(text)


@pytest.mark.parametrize(
    ("sentence", "code", "subject"),
    [
        ("On n17 GPU 4 comes up with PCIe width x4 (others x16).", "below-width", "n17 GPU 4"),
        ("GPU 4 trained at Gen2 instead of Gen5 under load", "below-speed", "GPU 4"),
        ("mlx5_6 has 100 Gb/s where all other ports have 400 Gb/s", "below-rate", "mlx5_6"),
        ("Measured on 0000:9b:00.0: 21.5 GB/s vs. 54 GB/s", "below-bandwidth", "0000:9b:00.0"),
        ("npu-smi lists 15 of 16 NPUs after the power cut", "below-count", None),
        ("n5: card 3 has lanes x2, rest x4", "below-width", "n5 card 3"),
        ("GPU 6: 2 of 18 NVLinks are down", "below-count", "GPU 6"),
        ("n17 gets 24.6 GB/s in ib_write_bw to each of them, all others do 48.9", "below-bandwidth", "n17"),
        ("GPU 4 runs at Gen3, all the others are at Gen5", "below-speed", "GPU 4"),
        ("n12: GPU 4 (slot 5) trains to x8 gen5, everything else x16 gen5", "below-width", "n12 GPU 4"),
        ("GPU 3 shows gen 1 while others show gen 4", "below-speed", "GPU 3"),
        ("speed of rail 4: rate 100, others 200", "below-rate", "rail 4"),
        ("gpu-count check of gpu-31: expected 8 GPUs but found 7", "below-count", "gpu-31"),
    ],
)
def test_a_value_that_a_person_compares_is_stated(sentence: str, code: str, subject: str | None) -> None:
    (report,) = list_compared(f"Hello,\n{sentence}\nThanks")
    assert (report.code, report.subject) == (code, subject)
    assert identify_command(f"Hello,\n{sentence}\nThanks") == (STATED,)


@pytest.mark.parametrize(
    "sentence",
    [
        "Why does GPU 4 show x4 instead of x16?",
        "GPU 4 has x8 instead of x16 by design.",
        "GPU 4 came up with x16 instead of x8.",
        "GPU 4 at x4 instead of x16 was fixed by a new riser.",
        "The cards have x8 instead of x16.",  # of no part
        "GPU 3 and GPU 4 have x8 instead of x16 lanes, one of them.",  # which, it does not state
        "GPU 4 has 12 GB/s, the other 7 GPUs are idle",
        "mlx5_0 rate 400, others 400",
        "GPU 4 reaches 381 GB/s vs 390 GB/s of the others",
        "A node with 7 of 8 GPUs shows no other sign.",
        "The job sees 4 of 8 GPUs, as requested.",
        "We use only 4 of 8 GPUs here",
        "CUDA_VISIBLE_DEVICES leaves 2 of 8 GPUs",
        "expected 8 GPUs, found 8",
        "expected 7 chapters, found 6",
    ],
)
def test_what_is_usual_or_over_is_not(sentence: str) -> None:
    assert list(list_compared(sentence)) == []


def test_a_long_text_is_a_log_and_has_no_sentences() -> None:
    assert list(list_compared("npu-smi lists 15 of 16 NPUs\n" + "x\n" * 60_000)) == []


_NODES = (("gpu-1", 8, "up"), ("gpu-2", 8, "up"), ("gpu-3", 8, "down"), ("gpu-4", 7, "up"))


@pytest.mark.parametrize(
    "text",
    [
        "[" + ",".join(f'{{"host": "{n}", "gpus": {gpus}, "ib": {{"state": "{ib}"}}}}' for n, gpus, ib in _NODES) + "]",
        "{" + ",".join(f'"{name}": {{"gpus": {gpus}, "state": "{ib}"}}' for name, gpus, ib in _NODES) + "}",
        "".join(f'{{"host": "{name}", "gpus": {gpus}, "state": "{ib}"}}\n' for name, gpus, ib in _NODES),
        "".join(f"- host: {name}\n  gpus: {gpus}\n  state: {ib}\n" for name, gpus, ib in _NODES),
        "".join(f"Record_{at}:\n node_name: {n}\n gpus: {g}\n state: {ib}\n" for at, (n, g, ib) in enumerate(_NODES)),
        "".join(f"{name}\n     state = {ib}\n     ngpus = {gpus}\n" for name, gpus, ib in _NODES),
        "".join(f"node={name} gpus={gpus} state={ib}\n" for name, gpus, ib in _NODES),
    ],
)  # fmt: skip
def test_records_are_read_in_any_form(text: str) -> None:
    assert identify_command(text) == (SHEET,)
    reports = {(report.code, report.subject) for report in list_sheet_faults(text)}
    assert reports == {("below-count", "gpu-4"), ("sheet-down", "gpu-3")}


def test_records_without_a_fault_are_known() -> None:
    text = "".join(f"node={name} gpus=8 state=up\n" for name, *_ in _NODES)
    assert (identify_command(text), list_sheet_faults(text)) == ((SHEET,), [])
    assert identify_command(text.replace("node=", "user=")) == ()


def lines(form: str, *values: float) -> str:
    return "".join(f"{form.format(at, value)}\n" for at, value in enumerate(values, 1))


@pytest.mark.parametrize(
    ("text", "subjects"),
    [
        (lines("host n{}: {} GB/s", 180, 181, 21, 179, 180), ["n3"]),
        (lines("host n{}: {} GB/s", 180, 181, 178, 179, 180), []),
        (lines("host n{}: {} GB/s", 180, 181, 21), []),  # too few
        (lines("host n{}: {} GB/s", 180, 21, 22, 179), []),  # half of them: two kinds
        (lines("GPU {} h2d {} GB/s d2h 53 GB/s", 54, 55, 54, 13), ["NVIDIA 4"]),
        (lines("rank {}: {} TFLOPS", 610, 612, 300, 611), ["rank 3"]),
        (lines("a{0} -> b{0}: {1} Gbit/s", 390, 391, 96, 389), ["a3 - b3"]),
        (lines("2f:0{}.0 {} GBps", 54.1, 54.2, 54.1, 11.3), ["0000:2f:04.0"]),
        (lines("GPU {} rx {} GB/s", 20, 21, 20, 1), []),  # traffic of a job
        (lines("fp{} {} TFLOPS", 980, 970, 990, 60), []),  # no host
        (lines("[ 5] {}.00 sec {} Gbits/sec", 94, 93, 94, 9), []),  # one connection over time
    ],
)
def test_lines_of_measurements_are_compared(text: str, subjects: list[str]) -> None:
    assert subjects == [report.subject for report in list_slow_lines(f"bandwidth\n{text}")]
    assert (
        list_slow_lines(text.replace("h2d", "").replace("d2h", "")) == []
    )  # no benchmark is named: what they are is not known


def test_what_two_claim_is_found_and_masters_of_two_fabrics_are_not() -> None:
    line = "sminfo: sm lid {0} sm guid 0x1a{0}, activity count 9 priority 14 state 3 SMINFO_MASTER\n"
    (report,) = list_compared(line.format(3) + line.format(9))
    assert report.code == "sm-second-master"
    assert list(list_compared(line.format(3) * 2)) == []
    asked = "$ sminfo -C mlx5_{}\n"
    assert list(list_compared(asked.format(0) + line.format(3) + asked.format(4) + line.format(9))) == []
    assert [one.text for one in list_compared(line.format(3) + line.format(9))] == [
        "; ".join(own for *_, lines in find_claims(line.format(3) + line.format(9)) for own in lines.values())
    ]
