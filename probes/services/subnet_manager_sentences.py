"""More sentences of opensm: what did not answer it, settings that it refused, its own files and ports that fail.

Codes of opensm are not unique (those of its performance manager repeat others), so that the words count, too.
Source: opensm 3.3.24 and 5 (opensm/*.c, libvendor/osm_vendor_ibumad.c).
"""

from probes.kernel.sentence import Sentence, row


def _row(code: str, needle: str, pattern: str) -> Sentence:
    return row("service", code, "opensm", needle, pattern, "opensm 5")


SUBNET_MANAGER_SENTENCES = (
    _row("sm-lids-out", "RAN OUT OF LIDS", r"ERR 0307: OPENSM RAN OUT OF LIDS"),
    _row(
        "sm-files", "ERR 61",
        r"ERR 61(?:0[178]|1[0-2]): (?P<what>Failed to \w{2,10} the db \w{2,9}|\w{4,6}\(\) failed)",
    ),
    _row(
        "sm-files", "ERR 4C0",
        r"ERR 4C0[189A-C]: (?P<what>cannot (?:open file|change access)|\w{4,6}\(\) failed|Failed to rename)",
    ),
    _row(
        "sm-noisy-port", "noisy physical port",
        r"(?:Disabling|ERR 3811: Failed to disable) noisy physical port 0x[0-9a-f]{4,16}: lid (?P<lid>\d{1,5}), "
        r"num (?P<port>\d{1,3})",
    ),
    _row(
        "sm-noisy-port", "unhealthy physical port",
        r"Marking unhealthy physical port by lid:(?P<lid>\d{1,5}) num:(?P<port>\d{1,3})",
    ),
    _row(
        "sm-link-trap", "Received Generic Notice",
        r"Received Generic Notice type:\d{1,3} num:(?:129|130|131) \((?P<what>[^)]{3,60})\).{0,80} from "
        r"LID:(?P<lid>\d{1,5})",
    ),
    _row(
        "sm-prefix", "match configured prefix",
        r"ERR 1B4[01]: PortGID subnet prefix (?P<what>0x[0-9a-f]{4,16}) does not match configured prefix",
    ),
    _row("sm-key", "our local sm_key", r"ERR 2F18: Got SM .{1,80} that doesn't match our local sm_key"),
    _row("sm-key", "authentication failure", r"ERR 2F1[AB]: SMInfo\([GS]ET\) sender .{1,80} authentication failure"),
    _row("sm-duplicate-guid", "uplicate ", r"ERR 0D1(?:3|9|C): .{0,120}[Dd]uplicate (?:alias )?port GUID"),
    _row("sm-port-closed", "umad_", r"ERR 54(?:16|20|2A|2B|2C): umad_\w{1,24}(?:\(\))? failed"),
    _row("sm-port-closed", "requested CA guid", r"ERR 5422: Unable to find requested CA guid"),
    _row("sm-port-closed", "IS_SM capmask", r"ERR 5431: setting IS_SM capmask: cannot open file"),
    _row("sm-routing", "Not enough VLs", r"ERR AD25: Not enough VLs available"),
    _row("sm-routing", "UPDN algorithm", r"disabling UPDN algorithm, no root nodes were found"),
    _row(
        "sm-routing", "torus",
        r"ERR 4E(?:48: Too few data VLs|57: build_torus finished with errors|1A: missing fabric)",
    ),
    _row("sm-tables", "forwarding table block", r"ERR 0402: Setting forwarding table block \d{1,5} failed"),
    _row("sm-tables", "MFT block", r"ERR 0802: Setting MFT block failed"),
    _row("sm-tables", "is not up to date", r"ERR 331D: LFT of switch .{1,100} is not up to date"),
    _row("sm-group-refused", "ERR 1B", r"ERR 1B(?:1[0-3]|26|3[0-6]): "),
    _row(
        "sm-no-answer", "end completed with error",
        r"ERR 54(?:09|10|11): .{0,8}[Ss]end completed with error.{0,160}?(?:\bLID (?P<lid>\d{1,5}))?$",
    ),
    _row("sm-no-answer", "MAD completed in error", r"ERR 3113: MAD completed in error"),
    _row("sm-no-answer", "Timeout while getting attribute", r"ERR 3120: Timeout while getting attribute"),
)  # fmt: skip
