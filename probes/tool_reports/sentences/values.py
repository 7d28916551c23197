"""Labels, columns and keys whose values state trouble by their words alone, in outputs that no reader has.

A state of a part that does not work, a count of errors above zero, a value below the one that it should have. What a
setting, a limit or a count of what was repaired is called is left out, and so is a text that is about no part of a
server or its network. What such a value means is a matter of rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern
from probes.tool_reports.sentences.parts import list_parts
from probes.tool_reports.tables.entries import (
    CURRENT,
    DOWN,
    EXPECTED,
    MOST,
    TROUBLE,
    WELL_WORD,
    is_below,
    is_incomplete,
    read_number,
    shape,
)

STATE, COUNT, BELOW = "value-state", "value-count", "value-below"
_LONGEST, _MOST_LINES, _LONGEST_VALUE = 400, 4000, 80
_NEAR = 60  # lines below a heading that are still about its part
_MOST_DOWN = 4  # parts; a longer list is one of what is not used
_LESS = 0.9  # a smaller part of another value

_OF_FIELD = lazy_pattern(
    r"(?i)gpu|\bethernet-?\d|\blacp\b|\bdcbx\b|\bib_\w|\bfan\d|\bvolts?\b|\bmpath|\bptp\b|\bdpu\b|_temp\b|\b[nhx]pus?\b|nvlink|nvswitch|\bpcie?\b"
    r"|mlx[45]"
    r"|infiniband|\b[abh][123]00\b|\brdma|\broce\b|\bhcas?\b|\bnics?\b|\befa\b"
    r"|xgmi|\bhccs\b|\bfabric\b|\bswitch|\blinks?\b|\bports?\b|\becc\b|\bfans?\b|\bpsu|power suppl|\bcool\w+|\bleak"
    r"|temperature|thermal|power|topology|\bdrives?\b|\bdisks?\b|\b[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b"
    r"|nvme|\b(?:tray|slot)s?\b|\bdimms?\b|\btransceiver|\biommu\b|\bacs\b|peermem|memlock|\bmc\d"
    r"|storage|ceph|lustre|\bnfs\b|\bosds?\b|\bmdt?\b|\bphase\b|\bost|mounts?\b|\bbgp\b|neighbor|\bmodules?\b"
    r"|\boptic|\bcables?\b|\bbackends?\b|\blanes?\b|\bled\b|\braid|\barrays?\b|\bmd\d|\bpumps?\b|\bcoolant|\bcdu\b"
    r"|\b(?:[cd]?node|host|rank|worker|sled|blade|rail|trainer)[\w-]{0,20}\b|nccl|busbw|\bi(?:or|perf3?)\b|\bhpl\b"
    r"|t?flops\b|step ?time|\bdcgm|\bdbe\b|\bbios\b|\bnvidia|\bmtu\b|\bpfc\b|\b(?:eth|ens|enp|ib|swp|sxm)\d"
    r"|(?:[GMT]i?B|[GM]b(?:it)?)(?:/s|ps)\b|\bTF\b|\bping\b|\bssh\b|\boss\d|\bmds\d|\bhbm|\bchips?\b|tok(?:en)?s?/s|\baccelerator|\bchassis|\bcrac\d|\bhvac|\bfan_|\bperf\w{2,6}\b|\blatency\b"
)
_IN_JSON = lazy_pattern(r'"(?P<label>[\w .:/-]{2,60})" ?: ?(?:"(?P<text>[^"\n]{1,80})"|(?P<number>[\w.]{1,20}))')
_KEY = lazy_pattern(r'(?<![\w.])(?P<label>[A-Za-z][\w.-]{1,60})=(?:"(?P<text>[^"\n]{1,80})"|(?P<word>[^\s,;"]{1,80}))')
_LABELLED = lazy_pattern(
    r"[ \t>*#-]{0,40}(?:\[\w{2,20}\] )?(?P<label>[A-Za-z][^:=|\n]{1,79}?)"
    r"(?:[ \t]{0,40}[:=][ \t]{0,40}|[ \t]{0,40}\.{3,60}[ \t]{0,40}|[ \t]{2,60}"
    r"|(?<=-state) |(?<=-status) |(?<=[Ss]tatus) is (?!init))(?P<value>[^\s.:=|][^\n]{0,119})"
)
_SWITCHED_OFF = lazy_pattern(
    r"(?i)\badmin[\w-]{0,15}(?: (?:state|status|mode))?(?:[ \t:=]{1,40}| is )[\"']?(?:down|disabled?|off)\b"
)
_OF_TEXT = lazy_pattern(r"[ \t\"]{0,40}(?:description|alias|comment|label)\b")  # whose words name no part here
_BESIDE = 3  # lines around a state in which the one that was asked for stands
_CELLS = lazy_pattern(r"[ \t]*[|,;\t][ \t]*|[ \t]{2,60}")
_STATES = (
    rf"{TROUBLE}|failing|fault(?:ed)?|errored|downgraded|offline|poor|impaired|rejected|abnormal|alarm|throttled|quarantined|isolated"
    r"|broken|dead|stuck|hung|crashed|wet|leak(?:ing|age)?|overheat\w{0,4}|unresponsive"
    r"|(?!no |not |without )(?:[a-z]{2,14} ){0,2}mis-?match\w{0,3}"
    r"|misconfigured|unplugged|disconnected|err[ _-]?disabled?|red|retired"
    r"|not[ _-](?:good|healthy|running|responding|loaded|connected|detected|working|functional)"
    r"|tripped|stormed|disconn|(?:waiting|marked|flagged) for (?:rma|repair|replacement)"
)
_TROUBLE = lazy_pattern(rf"(?i)(?:{_STATES})!?(?=$|[\s(,;/\]])(?! Hat\b)")
_TROUBLE_CELL = lazy_pattern(rf"(?i)(?:{_STATES})!?(?: ?\([^)]{{0,60}}\))?")
_LOUD = lazy_pattern(
    r"(?:FAIL(?:ED|URE)?|DEGRADED|DOWNGRADED|UNHEALTHY|CRITICAL|FAULTY?|OFFLINE|LOST|BAD|ALARM|NOT OK|ERR|NOK|KO)!?"
)
_IN_BRACKETS = lazy_pattern(r"(?i)[a-z]{2,20} \((?:fault|failed|failure|error|alarm)\)")
_REFUSED = lazy_pattern(r"NO|KO|✗|✘|❌|✖")  # of a check that others passed
_ADVICE = lazy_pattern(r"(?i)(?:replace|reseat|rma|repair|drain|remove)\b")
_OF_ADVICE = lazy_pattern(r"\b(?:verdict|recommend\w{0,6}|advice|remedy|required)\b")
_DARK = lazy_pattern(r"-[34]\d(?:\.\d{1,3})?(?: ?dBm)?")  # no light arrives
_OF_LIGHT = lazy_pattern(r"\b[rt]x ?power\b|\boptical power\b")
_ENUMERATED = lazy_pattern(r"[A-Z][A-Z0-9]{0,20}(?:_[A-Z0-9]{1,20}){1,8}")
_ENUMERATED_TROUBLE = frozenset(
    (
        "DEGRADED",
        "UNHEALTHY",
        "FAILED",
        "FAILURE",
        "FAIL",
        "ERROR",
        "CRITICAL",
        "FAULT",
        "FAULTY",
        "LOST",
        "OFFLINE",
        "ERR",
        "WARN",
        "DRAIN",
        "ISOLATED",
        "QUARANTINED",
    )
)
_ENUMERATED_WELL = frozenset(["NO", "NONE", "NOT", "OK", "CLEAR", "DISABLED", "ENABLED"])
_DOWN = lazy_pattern(rf"(?i)(?:{DOWN}|no[ -]?carrier|amber|los)(?=$|[\s(,;/])")
_LOW = lazy_pattern(r"(?i)(?:low|high|below|above|out of range)(?=$|[\s(,;])")
_OF_STATE = lazy_pattern(r"\b(?:state|status|health|link|led|phys\w{0,10}|carrier|port|oper\w{0,10})\b")
_OF_LEVEL = lazy_pattern(r"\b(?:flow|pressure|voltage|temp\w{0,10}|level|humidity)\b")
_OF_STATED = lazy_pattern(
    r"(?i)\b(?:fault|fail(?:ure|ed)?|alarm|error|degraded|overload|overheat\w{0,4}|throttled|lost|leak\w{0,5}"
    r"|los|lol|pending)$"
)
_YES = lazy_pattern(r"(?i)(?:true|yes|asserted|active|detected|present)")
_OF_SLOWDOWN = lazy_pattern(
    r"\b(?:thermal|hot|prochot|temp\w{0,8})\b[a-z ]{0,20}\b(?:violation|throttl|slowdown|brake)"
)
_OF_POWER = lazy_pattern(r"\b(?:ppt|power|threshold|limit|count)\b")  # what its limit slows is usual
_PERCENT = lazy_pattern(r"(?P<number>\d{1,3}(?:\.\d{1,4})?) ?%")
_MUCH = 20  # percent of the time
_VARIABLE = lazy_pattern(r"[A-Z][A-Z0-9]{1,20}(?:_[A-Z0-9]{1,20}){1,8}")  # of the environment
_HEX = lazy_pattern(r"0x0{0,15}[1-9a-fA-F][0-9a-fA-F]{0,15}")
_OF_FLAGS = lazy_pattern(r"\b(?:warning|alarms?|faults?|los|lol|errors?)\b")
_NUMBER = lazy_pattern(r"[1-9]\d{0,15}")
_COUNTED = lazy_pattern(
    r"\b(?:errors?|errs?|uncorr\w{0,10}|fatal|faults?|failures?|failed|fails|crc|drops?|dropped|discards?|lost|alarms?"
    r"|violations?|mismatch\w{0,3}|poison\w{0,3}|overflows?|trips?|brakes?|time-?outs|ues?|uces?|retrains?"
    r"|unhealthy|missing|offline|dead|xids?|dbe|mces?"
    r"|bad|degraded|flaps?)\b"
)
_OF_DROPS, _FEW_DROPS = lazy_pattern(r"\b(?:drops?|dropped|discards?)\b"), 50  # which a queue has in good health
_NOT_COUNTED = lazy_pattern(  # a setting, a limit, what was repaired, what is none
    r"\b(?:correct(?:ed|able)|ce|replays?|single bit|sbe|aggregate|lifetime|history|retry|retries|max\w{0,4}|min\w{0,4}"
    r"|threshold|limits?|timeout|allowed|percent|ratio|rate|id|code|mask|since|at|time|level|log|entries|pages?|rows?"
    r"|index|size|lanes?|first|line|version|mark|kill\w{0,3}|on|probability"
    r"|injected|wred|ignored|handling|number of tests|reported|supported|enabled?|detection|reporting)\b"
)
_SETTING = lazy_pattern(
    r"\b(?:policy|action|mode|supports?|supported|level|log|logging|thresholds?|limit|on (?:error|fail\w{0,4})|default"
    r"|requested|expected|want(?:ed)?|filter|behaviou?r|retry|retries|timeout|previous|last|history|message|msg|reason"
    r"|description|comment|note|title|name|type|events?|signal|severity|priority|alert\w{0,6}|example|option"
    r"|config\w{0,12}"
    r"|library|kind|category|class|cause|remote|on|mask|enabled?|admin\w{0,12}|desired|target|fail on|secure boot|phase"
    r"|colou?r|conclusion|if|when|job|pod|build|test case)\b"
)
_PLURAL = (
    r"gpus|npus|hpus|xpus|nics|hcas|links|nvlinks|ports|lanes|rails|devices|modules|fans|psus|drives|backends|nodes"
    r"|trays"
    r"|switches|nvswitches|efas|planes"
)
_OF_RATIO = lazy_pattern(rf"\b(?:{_PLURAL}|count|up|ready|online|active|healthy|width|cur(?:rent)? ?/ ?max\w{{0,4}})\b")
_OF_SPEED = lazy_pattern(r"\b(?:gen|speed|generation)\b")  # of idle devices it is less
_BOUND = lazy_pattern(
    r"(?<![\w.])[+]?x?(?P<value>-?\d{1,6}(?:\.\d{1,3})?) ?[^\s\d(]{0,6} ?[\w/]{0,6} ?(?:\(|[ \t]{1,8}(?=limit))"
    r"(?P<bound>max(?:imum)?|of"
    r"|expected|rated|capable(?: of)?|from|should be|min(?:imum)?|(?:low|high) alarm"
    r"|crit(?:ical)?|limit|want|need)[ =:]{0,3}"
    r"[+]?x?(?P<other>[+-]?\d{1,6}(?:\.\d{1,3})?)"
)
_OF_MOST = lazy_pattern(r"\b(?:width|lanes?|links?|rate|bandwidth|bw)\b")
_CAPABLE = lazy_pattern(
    r"(?<![\w.])x(?P<value>\d{1,2}) ?\(x(?P<whole>\d{1,2}) (?:capable|possible|max\w{0,4}|expected|slot)"
)
_OUT_OF = lazy_pattern(  # "links up 70/72", "8 gpus expected, 7 visible", "(7 != 8)" of a check that failed
    rf"(?i)\b(?:{_PLURAL})(?: (?:up|active|ready|visible|online|ok|healthy|present|found|detected))?[ :=]{{1,3}}"
    r"(?P<value>\d{1,4}) ?(?:/|of) ?(?P<whole>\d{1,4})(?![\w/.-])"
    rf"|(?P<wanted>\d{{1,4}}) (?:{_PLURAL}) expected[,;:]? (?:but )?(?:only )?(?P<has>\d{{1,4}}) "
    r"(?:visible|found|present|seen|detected|up|active)\b"
    r"|\bFAIL\w{0,3}\b.{0,40}\((?P<less>\d{1,4}) ?(?:!=|<) ?(?P<more>\d{1,4})\)"
)
_SERVING = (  # what serves a cluster, whose number is no matter of the load
    r"(?:backend|server|target|osd|brick|drive|disk|path|member|pump|fan|psu|[cd]node|storage node|io node|replica"
    r"|link|nvlink|nvswitch|switch|uplink|plane)s?"
)
_UP_OF = lazy_pattern(  # "11 of 12 backend UP", "96 osds: 94 up"
    rf"(?i)\b(?P<value>\d{{1,5}}) ?(?:/|of|out of) ?(?P<whole>\d{{1,5}}) (?:{_SERVING}|gpus?|nodes?|hosts?|nics?)"
    r"(?: (?:are|is))? (?:up|online|ready|alive|healthy|reachable|connected)\b"
    rf"|\b(?P<all>\d{{1,5}}) {_SERVING}: (?P<has>\d{{1,5}}) (?:up|online|active|ready|alive)\b"
)
_BY_STATE = lazy_pattern(  # "44 UP, 4 DOWN"
    r"(?i)\d{1,6} [a-z]{2,14}(?: ?[,;/|] ?\d{1,6} [a-z]{2,14}){1,8}"
)
_OF_STATES = lazy_pattern(r"(\d{1,6}) ([A-Za-z]{2,14})")
_SERVED = lazy_pattern(rf"(?:.*\b)?{_SERVING}")
_NO_SERVICE = lazy_pattern(r"(?i)(?:down|inactive|offline|failed|faulty|missing|lost|dead|degraded|unhealthy|bad)")
_ARRAY = lazy_pattern(r"\[(?P<whole>\d{1,3})/(?P<value>\d{1,3})\] \[(?=U{0,128}_)[U_]{1,128}\]")  # of /proc/mdstat
_OF_ARRAY = lazy_pattern(r"(?P<name>md\w{1,30}) : \w")
_FAILED_MEMBER = lazy_pattern(r"(?<=[\] ])\w{2,20}\[\d{1,3}\]\(F\)")
_NO_ANSWER = lazy_pattern(  # what the C library calls errors, in place of the values that other rows have
    r"[ \t]*(?P<name>[\w./@-]{2,80}): (?P<error>Resource temporarily unavailable|Input/output error|No such device"
    r"(?: or address)?|Connection (?:refused|timed out|reset by peer)|Stale file handle|No route to host|Host is down"
    r"|Transport endpoint is not connected|Cannot send after transport endpoint shutdown|Operation timed out"
    r"|Remote I/O error|Device or resource busy|Bad address|Protocol error|inactive device)[.]?[ \t]*"
)
_IS_MOST, _IS_LEAST = ("max", "of", "exp", "rat", "cap", "fro", "sho", "wan", "nee"), ("min", "low")
_WANTED = lazy_pattern(rf"(?:.*\b)?(?:{EXPECTED})")
_FOUND = lazy_pattern(rf"(?:.*\b)?(?:{CURRENT}|got|observed|have|real)")
_ROLE = lazy_pattern(rf"\b(?:(?P<most>{MOST})|{CURRENT})\b")
_OF_PAIRS = lazy_pattern(rf"\b(?:width|lanes?|{_PLURAL}|nvlink)\b")
_NO_VALUE = lazy_pattern(  # a prompt, a question, a condition, what somebody tells
    r"^[\w.@:~\[\]-]{1,80}[$#>] ?\S|\?[\s\"'*_]*$"
    r"|^[\W_]{0,12}(?i:if|when|whether|unless|why|how|what|to avoid|make sure) "
    r"|\bAccounts=\S{1,200} Licenses="  # a reservation of Slurm, whose state is none of a part
    r"|\}[ \t]{1,8}0(?:\.0{1,9})?(?:[ \t]\d{1,16})?$"  # a sample of Prometheus that is none
)
_OBJECT = lazy_pattern(r"(?=\{)")
_LIST = lazy_pattern(r'"(?P<kind>gpu|npu|hpu|nic|hca|port|nvlink|nvswitch|fan|psu|device|module)(?:s|e?s)?" ?: ?[\[{]')
_NUMBERED = lazy_pattern(
    r'"(?P<kind>gpu|npu|hpu|nic|hca|port|nvlink|nvswitch|fan|psu|device|module)?[_ ]?(?:index|id|number|idx)" ?: ?"?'
    r"(?P<number>\d{1,3})\b"
)
_OWNER = lazy_pattern(r"(?i)(?:host|node|server|host_?name|instance|name|device|dev|port|interface|rank|switch|sensor)")
_CAMEL = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z][a-z])")


Judged = tuple[str, str, bool]  # the code, the label and value as they are shown, whether it is only down


class StatedValue(NamedTuple):
    """A value that states trouble. `code`: STATE, COUNT, BELOW or that of an odd row; `part`: as in `parts.py`."""

    code: str
    part: str | None
    what: str
    line: str
    is_down: bool  # and no more than that


def list_values(text: str) -> list[StatedValue]:
    """Each in the order of its line.

    >>> text = "GPU 5\\n  Health : DEGRADED (bandwidth)\\n  Uncorrectable errors: 3\\n  PCIe Width (cur/max): 8/16\\n"
    >>> [(value.code, value.part, value.what) for value in list_values(text)] # doctest: +NORMALIZE_WHITESPACE
    [('value-state', 'NVIDIA 5', 'Health: DEGRADED (bandwidth)'),
     ('value-count', 'NVIDIA 5', 'Uncorrectable errors: 3'),
     ('value-below', 'NVIDIA 5', 'PCIe Width (cur/max): 8/16')]
    >>> list_values("GPU 5\\n  error policy: fail\\n  Health: OK\\n  max errors: 3\\n  GPUs: 8/8\\n")
    []
    """
    if not is_of_field(text):
        return []
    values = list(dict.fromkeys([*_find_values(text), *_list_unanswered(text)]))
    only_down = {value.part or value.line for value in values if value.is_down}
    return [value for value in values if not (value.is_down and len(only_down) > _MOST_DOWN)]


def is_of_field(text: str) -> bool:
    """Whether a text is about parts of a server or its network."""
    return _OF_FIELD.search(text) is not None


def _find_values(text: str) -> Iterator[StatedValue]:
    heading, age, kind, array = None, 0, "", ""
    roles: dict[tuple[str | None, str], tuple[bool, str]] = {}  # of each label the value that stands for itself
    pieces = list(_list_pieces(text))
    off = {at for at, line in enumerate(pieces) if _SWITCHED_OFF.search(line)}
    for number, line in enumerate(pieces):
        parts = [] if _OF_TEXT.match(line) else list_parts(line)
        if not parts and (match := _NUMBERED.search(line)) and (match["kind"] or kind):
            parts = list_parts(f"{(match['kind'] or kind).upper()} {int(match['number'])}")
        kind = match["kind"] if (match := _LIST.search(line)) else kind  # of the objects that follow
        heading, age = (parts[0] if len(parts) == 1 else None, 0) if parts else (heading, age + 1)
        part = heading if age <= _NEAR else None
        array = match["name"] if (match := _OF_ARRAY.match(line)) else array
        found = [*_judge_line(line, bool(parts)), *_pair_with_most(roles, part, line), *_judge_array(array, line)]
        is_off = off and not off.isdisjoint(range(number - _BESIDE, number + _BESIDE + 1))
        yield from (
            StatedValue(code, part, what, " ".join(line.split()), is_down)
            for code, what, is_down in found
            if not (is_down and is_off)
        )


def _judge_array(array: str, line: str) -> Iterator[Judged]:
    """Members that an array of the kernel's RAID is without.

    >>> [row[1] for row in _judge_array("md1", "      937165824 blocks super 1.2 [2/1] [U_]")]
    ['md1: 1 of 2 members [U_]']
    """
    if array and (match := _ARRAY.search(line)):
        members = match[0].rpartition(" ")[2]
        yield BELOW, f"{array}: {match['value']} of {match['whole']} members {members}", False
    for match in _FAILED_MEMBER.finditer(line) if array else ():
        yield STATE, f"{array}: {match[0]}, a member that failed", False


def _list_unanswered(text: str) -> Iterator[StatedValue]:
    """Rows with an error in place of what two others of their kind have.

    >>> [value.what for value in _list_unanswered("x-OST1 88T\\nx-OST2: Input/output error\\nx-OST3 87T\\n")]
    ['x-OST2: Input/output error']
    """
    lines = text.splitlines()[:_MOST_LINES] if _OF_FIELD.search(text) else []
    found = [match for line in lines if len(line) <= _LONGEST and (match := _NO_ANSWER.fullmatch(line))]
    for match in found:
        form, name = shape(match["name"]), match["name"]
        others = {words[0].rstrip(":") for line in lines if (words := line.split(None, 1)) and len(words[0]) < 90}
        alike = [other for other in others if other != name and any(map(str.isdigit, other)) and shape(other) == form]
        if len(alike) > len(found):
            part = next(iter(list_parts(name)), None)
            yield StatedValue(STATE, part, f"{name}: {match['error']}", " ".join(match[0].split()), False)


def is_among(name: str, names: str) -> bool:
    """Whether a host is one of those that Slurm folds so.

    >>> is_among("n07", "n[01-04,07]"), is_among("n7", "n[8-9]"), is_among("n7", "n7,n8")
    (True, False, True)
    """
    begin, mark, ranges = names.partition("[")
    number = name.removeprefix(begin)
    if not mark or not number.isdecimal() or not name.startswith(begin):
        return name in names.split(",")
    ends = (entry.partition("-") for entry in ranges.rstrip("]").split(","))
    return any(low.isdecimal() and int(low) <= int(number) <= int(high if high.isdecimal() else low)
               for low, _, high in ends)  # fmt: skip


def _list_pieces(text: str) -> Iterator[str]:
    """The lines, and the objects of JSON in one line each by itself."""
    for line in islice(text.splitlines(), _MOST_LINES):
        for piece in islice(_OBJECT.split(line), _MOST_LINES) if '"' in line else (line,):
            if len(piece) <= _LONGEST and not _NO_VALUE.search(piece):
                yield piece


def _judge_line(line: str, has_part: bool) -> Iterator[Judged]:
    pairs = [(match["label"], match["text"] or match["number"]) for match in _IN_JSON.finditer(line)]
    pairs = pairs or [(match["label"], match["text"] or match["word"]) for match in _KEY.finditer(line)]
    if len(pairs) > 1:
        yield from _compare_wanted(pairs)
    if not pairs and line.count("|") > 1:
        yield from _judge_boxed(line)
    if not pairs and (match := _LABELLED.fullmatch(line.rstrip(" \t\r,;|"))):
        pairs = [(match["label"].strip(), match["value"].strip().strip("'\""))]
        if not judge(*pairs[0]) and (inner := _LABELLED.fullmatch(pairs[0][1])):  # "GPU[3] : Throttle Status: HOT"
            pairs = [(f"{match['label'].strip()} {inner['label'].strip()}", inner["value"])]
    found = [judged for label, value in pairs if (judged := judge(label, value))] or list(_judge_bounds(line))
    owner = next((f"{value}: " for label, value in pairs if _OWNER.fullmatch(label)), "") if len(pairs) > 1 else ""
    yield from ((code, owner + what, is_down) for code, what, is_down in found)
    if not found:
        yield from _judge_cells(line, has_part)


def _judge_boxed(line: str) -> Iterator[Judged]:
    """Of a row with a name and a label with its value in one cell.

    >>> [row[1] for row in _judge_boxed("| 5. Xe Link Port | Status: Critical |")]
    ['5. Xe Link Port: Status: Critical']
    """
    name, *cells = [cell.strip() for cell in line.strip(" \t|").split("|")]
    for cell in cells if name else ():
        if (match := _LABELLED.fullmatch(cell)) and (judged := judge(match["label"].strip(), match["value"].strip())):
            yield judged[0], f"{name}: {judged[1]}", judged[2]


def judge(label: str, value: str) -> Judged | None:
    """What a value states where its label is known: the code, both as they are shown, and whether it is only down."""
    words = normalize(label)
    what = f"{label}: {value[:_LONGEST_VALUE]}"
    if _BY_STATE.fullmatch(value) and _SERVED.fullmatch(words):
        numbers = {word.lower(): int(number) for number, word in _OF_STATES.findall(value)}
        lost = sum(number for word, number in numbers.items() if _NO_SERVICE.fullmatch(word))
        return (STATE, what, False) if 0 < 4 * lost <= sum(numbers.values()) + 3 else None
    if is_incomplete(value):
        return (BELOW, what, False) if _OF_RATIO.search(words) and not _OF_SPEED.search(words) else None
    if _NUMBER.fullmatch(value) or _HEX.fullmatch(value):
        is_count = _COUNTED.search(words) if value.isdecimal() else _OF_FLAGS.search(words)
        is_setting = _NOT_COUNTED.search(words) or _VARIABLE.fullmatch(label)
        is_few = value.isdecimal() and int(value[:9]) < _FEW_DROPS and _OF_DROPS.search(words)
        return (COUNT, what, False) if is_count and not (is_setting or is_few) else None
    if (part_of_time := _PERCENT.fullmatch(value)) and _OF_SLOWDOWN.search(words) and not _OF_POWER.search(words):
        return (STATE, what, False) if float(part_of_time["number"]) >= _MUCH else None
    if _OF_ADVICE.search(words) and _ADVICE.match(value):
        return STATE, what, False
    if _SETTING.search(words):
        return None
    if _REFUSED.fullmatch(value) or (_DARK.fullmatch(value) and _OF_LIGHT.search(words)):
        return STATE, what, False
    if _TROUBLE.match(value) or _is_enumerated(value) or (_OF_STATED.search(words) and _YES.fullmatch(value)):
        return STATE, what, False
    if _IN_BRACKETS.fullmatch(value) or (_OF_STATE.search(words) and _LOUD.fullmatch(value.rpartition(" ")[2])):
        return STATE, what, False
    if _OF_STATE.search(words) and "," in value and _TROUBLE.match(value.rpartition(",")[2].lstrip()):
        return STATE, what, False  # "clean, degraded"
    if _DOWN.match(value) and _OF_STATE.search(words):
        return STATE, what, True
    return (STATE, what, False) if _LOW.match(value) and _OF_LEVEL.search(words) else None


def normalize(label: str) -> str:
    """The words of a label in lower case, with a blank between them."""
    return " ".join(_CAMEL.sub(" ", label).lower().replace("_", " ").replace("-", " ").split())


def _is_enumerated(value: str) -> bool:
    """Whether it is a constant of a program that has such a word.

    >>> _is_enumerated("NMX_GPU_HEALTH_DEGRADED_BW"), _is_enumerated("NVML_NO_ERROR")
    (True, False)
    """
    words = set(value.split("_")) if _ENUMERATED.fullmatch(value) else set()
    return bool(words & _ENUMERATED_TROUBLE) and not words & _ENUMERATED_WELL


def _judge_bounds(line: str) -> Iterator[Judged]:
    """A number beside the bound that it should keep.

    >>> [row[1] for row in _judge_bounds("RxPower -14.8 dBm (low alarm -12.0)  Temp 51 C (max 85)")]
    ['RxPower -14.8 dBm (low alarm -12.0)']
    """
    begins = 0
    for match in _BOUND.finditer(line):
        label = line[begins : match.start()].strip(" \t:=.")
        begins = match.end()
        words = label.lower().replace("_", " ")
        number, other, bound = float(match["value"]), float(match["other"]), match["bound"][:3]
        if bound in _IS_MOST:
            is_bad = _OF_MOST.search(words) and not _OF_SPEED.search(words) and number < _LESS * other
        else:
            is_bad = number < other if bound in _IS_LEAST else number >= other
        if is_bad:
            yield BELOW, " ".join(f"{label} {match[0]})".split())[-_LONGEST_VALUE:], False


def _pair_with_most(
    roles: dict[tuple[str | None, str], tuple[bool, str]], part: str | None, line: str
) -> Iterator[Judged]:
    """A value below the one that another line of the same label calls the most, or the expected one.

    >>> roles = {}
    >>> lines = "Max Link Width: x16", "Current Link Width: x4"
    >>> [row[1] for line in lines for row in _pair_with_most(roles, "", line)]
    ['Current Link Width: x4; Max Link Width: x16']
    """
    match = _LABELLED.fullmatch(line.strip())
    words = normalize(match["label"]).replace(".", " ") if match else ""
    role = _ROLE.search(words)
    if not match or not role or not _OF_PAIRS.search(words):
        return
    stem = part, _ROLE.sub("", words, count=1)
    is_most, shown = role["most"] is not None, " ".join(f"{match['label'].strip()}: {match['value'].strip()}".split())
    other = roles.setdefault(stem, (is_most, shown))
    if other[0] == is_most:
        return
    has, most = (other[1], shown) if is_most else (shown, other[1])
    if is_below(has.rpartition(": ")[2], most.rpartition(": ")[2]):
        yield BELOW, f"{has}; {most}", False


def _compare_wanted(pairs: list[tuple[str, str]]) -> Iterator[Judged]:
    """Of keys in one line that state what is expected and what was found.

    >>> list(_compare_wanted([("expected", "450"), ("measured", "212")]))
    [('value-below', 'measured: 212, expected: 450', False)]
    """
    named = [(label.lower().replace("_", " "), label, value) for label, value in pairs]
    wanted = next(((label, value) for words, label, value in named if _WANTED.fullmatch(words)), None)
    found = next(((label, value) for words, label, value in named if _FOUND.fullmatch(words)), None)
    if not wanted or not found or wanted[1] == found[1]:
        return
    if is_below(found[1], wanted[1], _LESS):
        yield BELOW, f"{found[0]}: {found[1]}, {wanted[0]}: {wanted[1]}", False


def _judge_cells(line: str, has_part: bool) -> Iterator[Judged]:
    """Of a row that begins with a part, and has a cell, or a last word in capitals, that is a state of trouble; a cell
    among others that are well; numbers of parts of which some are not there.

    >>> [row[0] for row in _judge_cells("| n2 | OK | OK | ERR |", False)], list(_judge_cells("gpus 8/8", False))
    (['value-state'], [])
    """
    cells = [cell.strip() for cell in _CELLS.split(line.strip(" \t|"))]
    stated = sum(_TROUBLE_CELL.fullmatch(cell) is not None for cell in cells[1:])
    well = sum(WELL_WORD.fullmatch(cell) is not None for cell in cells[1:])
    words = line.split()
    shown = " ".join(line.replace("|", " ").split())[:_LONGEST_VALUE]
    is_last = len(cells) > 2 and _LOUD.match(cells[-1]) and _TROUBLE_CELL.fullmatch(cells[-1])
    is_measured = is_last and any(map(read_number, cells[1:-1]))  # "flow  4.1 l/min  CRITICAL (min 12)"
    if (stated and len(cells) > 2 and (has_part or well > stated or is_measured)) or (
        has_part and words and len(words) <= 12 and _LOUD.fullmatch(words[-1].strip("|"))
    ):
        yield STATE, shown, False
    counts = [
        (
            match["value"] or match["has"] or match["less"],
            match["whole"] or match["wanted"] or match["more"],
        )
        for match in _OUT_OF.finditer(line)
    ]
    counts += [(match["value"] or match["has"], match["whole"] or match["all"]) for match in _UP_OF.finditer(line)]
    for value, whole in counts:
        if int(value) < int(whole):
            yield BELOW, shown, False
    if (capable := _CAPABLE.search(line)) and int(capable["value"]) < int(capable["whole"]):
        yield BELOW, shown, False
