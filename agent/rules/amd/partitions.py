"""Partitions of AMD GPUs: how many there are, and whether all GPUs are divided alike."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu, Partition
from agent.rules.amd.gpus import KFD, all_pass, select_gpus
from agent.rules.context import RuleContext
from agent.rules.devices import about_gpu
from agent.rules.rule import NODE, Fail, Result, rule
from agent.rules.wording import count_of, find_majority, join_labels


@rule("amd-partition-count")
def amd_partition_count(context: RuleContext) -> Iterator[Result]:
    groups, answers = select_gpus(context, None, lambda gpu: _partition(gpu).count is not None)
    yield from answers
    for group in groups:
        usual_count = find_majority(_partition(gpu).count for gpu in group)
        for gpu in group:
            yield _judge_count(context, gpu, usual_count)


def _judge_count(context: RuleContext, gpu: Gpu, usual_count: int | None) -> Result:
    about, partition = about_gpu(gpu), _partition(gpu)
    expected = partition.expected or usual_count
    if context.node.container or context.node.job_limit:
        return about.not_applicable("container", detail="a container or job sees only the partitions that it was given")
    if expected is None:
        return about.unknown(
            "not-shown", detail="its compute partition mode is not known, and no majority of GPUs has one number"
        )
    if (partition.count or 0) >= expected:
        return about.passes()
    why = f"{partition.compute} mode has {expected}" if partition.expected else f"other GPUs have {expected}"
    return about.fail(
        summary=f"{count_of(partition.count or 0, 'partitions')}; {why}",
        impact="A rank per partition does not start on this GPU, or starts with fewer ranks than planned.",
        remedy="While the GPU is idle set its compute partition again; read the kernel log for the lost partition.",
        evidence=(Evidence(f"partitions of {gpu.label}", str(partition.count), f"{KFD}/*/properties"),),
    )


@rule("amd-partition-mode-mixed")
def amd_partition_mode_mixed(context: RuleContext) -> Iterator[Result]:
    groups, answers = select_gpus(context, None, lambda gpu: None not in _modes(gpu))
    yield from answers
    for group in groups:
        modes = {gpu.id: "/".join(str(mode) for mode in _modes(gpu)) for gpu in group}
        if len(set(modes.values())) == 1:
            yield from all_pass(group)
        else:
            yield _fail_mixed(group, modes)


def _fail_mixed(group: list[Gpu], modes: dict[str, str]) -> Fail:
    usual_mode = find_majority(modes.values())
    others = [gpu for gpu in group if modes[gpu.id] != usual_mode]
    single = len(others) == 1
    modes_text = "; ".join(
        f"{mode} on {join_labels([gpu.label for gpu in group if modes[gpu.id] == mode])}"
        for mode in sorted(set(modes.values()))
    )
    return (about_gpu(others[0]) if single else NODE).fail(
        summary=f"compute and memory partition differ: {modes_text}",
        impact="Ranks get GPUs of different size; collectives run at the smallest one's speed.",
        remedy="While the node is idle set one compute and one memory partition on all GPUs.",
        evidence=tuple(
            Evidence(
                f"partition of {gpu.label}", modes[gpu.id],
                f"/sys/bus/pci/devices/{gpu.id}/current_compute_partition")
            for gpu in others[:8]
        ),
        ids=frozenset(gpu.id for gpu in others),
    )  # fmt: skip


def _partition(gpu: Gpu) -> Partition:
    return gpu.partition or Partition()


def _modes(gpu: Gpu) -> tuple[str | None, str | None]:
    return _partition(gpu).compute, _partition(gpu).memory
