"""Facts of the kernel's log, apart from what reads it: rules of assembly need the shapes alone."""

from probes.named_tuple import NamedTuple

AFTER_RESET = ("after_reset", "yes")  # in the detail of an error of a GPU that came before and after a reset


class LogEvent(NamedTuple):
    """Equal lines of the log, as one."""

    kind: str
    text: str  # the last of them
    at: str | None = None
    subject: str | None = None  # PCI address, or an interface's or RDMA device's name
    code: str | None = None
    count: int = 1  # type: ignore[assignment]  # hides tuple.count, which no fact needs
    first_at: str | None = None
    logged: str | None = None  # what the log states of the last one's time, where that gives no moment
    detail: tuple[tuple[str, str], ...] = ()
    boot: str | None = None  # None: this boot; "-1": the one before, "earlier": one of those before
    source: str | None = None  # None: that of the log of this boot
    times: tuple[str, ...] = ()  # of links that went down or came up: the last 32, as `at` or `logged`


class KernelLogFacts(NamedTuple):
    """Events in the order of their first lines."""

    events: tuple[LogEvent, ...]
    source: str  # what a person can repeat: "/dev/kmsg", "journalctl -k -b"
    since: str | None = None  # of the oldest line that is left, RFC 3339, or "+12.345 s" since boot
    whole: bool | None = None  # from the first line of this boot on; None: the form does not show it
    iommu_default: str | None = None  # "Translated" | "Passthrough": printed once at boot, read in saved logs
