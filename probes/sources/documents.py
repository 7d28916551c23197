"""Texts inside of documents: a journal as JSON, an answer of Prometheus, the JSON of a tool that ran commands, a page
of HTML, a table of Grafana. What is in them is written again as its tool prints it.
"""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from itertools import islice
from typing import Any

from probes.text import lazy_pattern

_MOST_VALUES = 200_000  # of a document that are looked at
_LIMIT_CHARACTERS = 8 << 20
_MOST_JSON = 20_000  # values, such as lines of a journal
_MOST_MISSES, _IDENTIFIED = 50, 50  # values that are none; values of which it is known whether a tool prints them
_JSON_BEGIN = lazy_pattern(r"(?:^[ \t]*|(?<==> ))[\[{](?=[ \t]*(?:[\"{\[]|$))", re.MULTILINE)
_OF_A_RUN = lazy_pattern(r'"(?:stdout(?:_lines)?" ?: ?["\[]|msg" ?: ?\[)')  # no tool prints its own output so
_ESCAPED = lazy_pattern(  # a string with lines in it
    r"^(?:[\w.-]{1,40}[:=(] ?)?b?[\"'](?:(?:[^\n\\]|\\[^n\n]){0,400}\\n){2}", re.MULTILINE
)
_ESCAPE = lazy_pattern(r"\\(u[0-9a-f]{4}|[\\\"'nrt])")
_ESCAPES = {"n": "\n", "r": "", "t": "\t"}
_TAGS = lazy_pattern(r"</(?:pre|code|span|div|p|td|tr|table|li|body|html)>|<br ?/?>")
_PRE_BREAK = lazy_pattern(r"<br ?/?>|</(?:p|div|tr|li|pre|h\d|table|ul|ol)>")
_TAG = lazy_pattern(  # of HTML alone: tools print <inactive> and <unknown>
    r"</?(?:a|abbr|b|blockquote|body|br|code|dd|details|div|dl|dt|em|font|h[1-6]|head|hr|html|i|img|kbd|li|link|main|meta|"
    r"ol|p|pre|samp|section|small|span|strong|sub|summary|sup|table|tbody|td|th|thead|title|tr|tt|u|ul)"
    r"(?:\s[^<>]{0,2000})?/?>"
)
_CELL = lazy_pattern(r"</t[dh]>")
_ENTITY = lazy_pattern(r"&(?:lt|gt|amp|quot|nbsp|apos|#\d{2,5}|#x[0-9a-fA-F]{2,4});")
_METRIC_NAME = lazy_pattern(r"[a-zA-Z_:]\w{1,100}(?:\{[^}]{0,2000}\})?")
_LONGEST_UPTIME = 1e9  # seconds; more are those since 1970
_LINES_OF_LOG = ("MESSAGE", "message", "log", "msg", "line", "body")
_TIMES = ("@timestamp", "timestamp", "time", "ts", "_ts", "date")
_HOSTS = ("_HOSTNAME", "hostname", "host", "nodename", "node")
_EVENTS = "LAST SEEN   TYPE   REASON   OBJECT   MESSAGE"  # of Kubernetes, as kubectl prints them
_DESCRIPTIONS = ("summary", "description", "message")
_NAMES = ("SYSLOG_IDENTIFIER", "_COMM", "ident", "unit", "appname")


def extract_text(text: str, is_output: Callable[[str], bool]) -> str | None:
    """The texts that a document has in it, one below the other; None where it is no such document, or has none.
    `is_output`: whether a text is what a known command prints: its JSON and its tables stay as they are.

    >>> extract_text('{"_HOSTNAME": "n7", "SYSLOG_IDENTIFIER": "kernel", "MESSAGE": "NVRM: x"}', str.isspace)
    'n7 kernel: NVRM: x\\n'
    >>> extract_text('{"result": [{"metric": {"__name__": "up", "job": "a"}, "value": [1.5, "1"]}]}', str.isspace)
    'up{job="a"} 1\\n'
    >>> extract_text("<p>It prints</p><pre>CA &#39;mlx5_0&#39;<br>\\tPort 1:</pre>", str.isspace)
    "It prints\\nCA 'mlx5_0'\\n\\tPort 1:\\n"
    >>> extract_text('"Time","up{job=""a""}"\\n"2025-11-03 07:00:00","0"\\n"2025-11-03 07:01:00","1"\\n', str.isspace)
    'up{job="a"} 1\\n'
    """
    start = text[:4096].lstrip()
    if len(text) > _LIMIT_CHARACTERS:
        return None
    is_page = _TAGS.search(text) is not None and not start.startswith("<?xml")
    if is_page or (_ENTITY.search(text) and not start.startswith("<")):
        return _strip_tags(text) if is_page else html.unescape(text)
    if _JSON_BEGIN.search(text):
        return _replace_json(text, is_output)
    if "\\n" in text and _ESCAPED.search(text):
        bare = _read_escapes(text)
        return extract_text(bare, is_output) or bare
    heading = start.partition("\n")[0]
    return _read_table(text) if ("__name__" in heading or "{" in heading) and not is_output(text) else None


def _read_escapes(text: str) -> str:
    r"""The text with the strings of a program, of JSON or YAML in it as they print, without their quotation marks.

    >>> _read_escapes('out: "a\\n\\tb\\nc\\n"\nend\n').splitlines()
    ['a', '\tb', 'c', '', 'end']
    """
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if match := _ESCAPED.match(line):
            quote = min((at for sign in "\"'" if (at := line.find(sign)) >= 0), default=match.end())
            bare = line[quote + 1 :].rstrip().removesuffix(line[quote])
            lines[number] = _ESCAPE.sub(_read_escape, bare)
    return "\n".join(lines) + "\n"


def _read_escape(match: re.Match[str]) -> str:
    sign = match[1]
    return chr(int(sign[1:], 16)) if sign[0] == "u" else _ESCAPES.get(sign, sign)


def _replace_json(text: str, is_output: Callable[[str], bool]) -> str | None:
    """The text with what is in its JSON values in their place; None where none has a text."""
    parts, at, decoder, is_new = list[str](), 0, json.JSONDecoder(), False
    misses = tried = known_to = 0
    is_whole = is_output(text)  # values with a margin are parts of it
    for match in islice(_JSON_BEGIN.finditer(text), _MOST_JSON):
        if match.start() < max(at, known_to):
            continue
        try:
            value, end = decoder.raw_decode(text, match.start() if is_whole else match.end() - 1)
        except (ValueError, RecursionError):
            misses += 1
            if misses >= _MOST_MISSES:
                break
            continue
        tried += 1
        own = text[match.start() : end]
        is_known = tried <= _IDENTIFIED and not _OF_A_RUN.search(own) and is_output(own.strip())
        if is_known:  # its lists are its own
            known_to = end
            continue
        lines = list(_list_texts(value))
        if lines:
            before = text[at : match.start()]
            parts += [before, "\n" * before.endswith("=> "), *(f"{line}\n" for line in lines)]
            at, is_new = end + (text[end : end + 1] in (",", "\n")), True  # of a list that is cut
    if not is_new:
        return None
    whole = "".join([*parts, text[at:]])
    first, *others = whole.split(f"{_EVENTS}\n")  # a heading is enough
    return "".join([first, f"{_EVENTS}\n" if others else "", *others])


def _list_texts(document: Any) -> Iterator[str]:
    """The lines of all texts in a value, in their order."""
    stack: list[tuple[str | None, Any]] = [(None, document)]
    looked_at = 0
    while stack and looked_at < _MOST_VALUES:
        name, value = stack.pop()
        looked_at += 1
        if isinstance(value, dict):
            own = _list_metrics(value) or _list_alert(value) or _list_output(name, value) or _list_log_line(value)
            if own:
                yield from own
            else:
                stack += [(key, inner) for key, inner in reversed(value.items())]
        elif isinstance(value, list):
            if value and all(isinstance(row, str) for row in value) and sum(map(len, value)) > len(value) * 8:
                yield from ("```", *value, "```")
            else:
                stack += [(name, inner) for inner in reversed(value)]
        elif isinstance(value, str) and value.strip().count("\n"):
            yield from ("```", *value.splitlines(), "```")


def _list_metrics(row: Mapping[str, Any]) -> list[str]:
    """A row of an answer of Prometheus as its exporter prints it: of several values the last; of Loki the lines."""
    labels = row.get("metric")
    if isinstance(row.get("stream"), dict) and isinstance(row.get("values"), list):
        return [str(value[1]) for value in row["values"] if isinstance(value, list) and len(value) > 1]
    values = [row.get("value"), *(row["values"][-1:] if isinstance(row.get("values"), list) else ())]
    if (
        isinstance(own := row.get("labels"), dict)
        and isinstance(row.get("name"), str)
        and type(values[0]) in (int, float)
    ):
        return [_write_metric(row["name"], own, str(values[0]))]  # as gpud lists them
    value = next((value for value in values if isinstance(value, list) and len(value) == 2), None)
    if not isinstance(labels, dict) or "__name__" not in labels or value is None:
        return []
    return [_write_metric(str(labels["__name__"]), labels, str(value[1]))]


def _list_alert(row: Mapping[str, Any]) -> list[str]:
    """An alert of Prometheus, Alertmanager or Grafana as Prometheus exports it, with the words that describe it."""
    labels, words = row.get("labels"), row.get("annotations")
    if not isinstance(labels, dict) or "alertname" not in labels:
        return []
    status = row.get("status", row.get("state"))
    state = str(status.get("state") if isinstance(status, dict) else status).lower()
    shown = {key: _one_line(text) for key, text in labels.items()}
    described = [_one_line(words[key]) for key in _DESCRIPTIONS if isinstance(words, dict) and key in words]
    shown |= {"alertstate": "firing" if state in ("firing", "active", "alerting") else state}
    shown |= {"description": "; ".join(dict.fromkeys(described))} if described else {}
    return [_write_metric("ALERTS", shown, "1")]


def _one_line(text: Any) -> str:
    return " ".join(str(text).replace('"', "'").replace("}", ")").split())


def _write_metric(name: str, labels: Mapping[str, Any], value: str) -> str:
    """A metric as exporters write it; `device` and `gpu` come first, as they do there."""
    keys = sorted(labels, key=lambda key: (key != "gpu", key != "device", key))
    shown = ",".join(f'{key}="{labels[key]}"' for key in keys if key != "__name__")
    return f"{name}{{{shown}}} {value}"


def _list_output(name: str | None, row: Mapping[str, Any]) -> list[str]:
    """What a command printed, below it and the host that a tool such as ansible ran it on."""
    output = row.get("stdout")
    if not isinstance(output, str) or not output.strip():
        return []
    command = row.get("cmd") or row.get("command") or ""
    words = " ".join(map(str, command)) if isinstance(command, list) else str(command)
    prompt = f"[root@{name} ~]# " if name and re.fullmatch(r"[\w.-]{2,64}", name) and re.search(r"\d", name) else "$ "
    return [f"{prompt}{words or 'cat'}", *output.splitlines()]


def _list_log_line(row: Mapping[str, Any]) -> list[str]:
    """A line of a log, of the journal or a collector, with its time, host and program before it."""
    message = next((row[key] for key in _LINES_OF_LOG if isinstance(row.get(key), str | list)), None)
    if isinstance(message, list):  # of the journal, where it is no text
        with_bytes = all(isinstance(byte, int) and 0 <= byte < 256 for byte in message)
        message = bytes(message).decode("utf-8", "replace") if with_bytes else None
    if not isinstance(message, str) or "\n" in message.rstrip("\n") or not message.strip():
        return []
    involved = row.get("involvedObject") or row.get("regarding")
    if isinstance(involved, dict):  # an event of Kubernetes
        words = (row.get("lastTimestamp") or "0s", row.get("type"), row.get("reason"))
        shown = (*words, f"{str(involved.get('kind', '')).lower()}/{involved.get('name')}", message.rstrip())
        return [_EVENTS, "   ".join(map(str, shown))]
    before = [text for keys in (_TIMES, _HOSTS) if (text := _find_text(row, keys))]
    if (microseconds := row.get("__REALTIME_TIMESTAMP")) and str(microseconds).isdecimal():
        moment = datetime.fromtimestamp(int(str(microseconds)[:16]) / 1e6, timezone.utc)
        before.insert(0, moment.isoformat(timespec="microseconds"))
    if isinstance(seconds := row.get("time"), int | float) and 0 <= seconds < _LONGEST_UPTIME:  # of dmesg --json
        before.insert(0, f"[{seconds:12.6f}]")
    program = _find_text(row, _NAMES)
    return [" ".join([*before, *([f"{program}:"] if program else ()), message.rstrip()])]


def _find_text(row: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    return next((row[key] for key in keys if isinstance(row.get(key), str) and " " not in row[key]), None)


def _strip_tags(text: str) -> str:
    """A page without its tags; what ends a line of it ends one here."""
    text = _CELL.sub(" ", _PRE_BREAK.sub(lambda match: "\n", text))
    return re.sub(r"\n{3,}", "\n\n", html.unescape(_TAG.sub("", text))).strip("\n") + "\n"


def _read_table(text: str) -> str | None:
    """The last values of metrics in a CSV: each a column (Grafana: its name is the heading), or each a row."""
    try:
        rows = list(
            csv.reader(text.splitlines()[:_MOST_VALUES], delimiter=";" if ";" in text.partition("\n")[0] else ",")
        )
    except csv.Error:
        return None
    if len(rows) < 2 or len(rows[0]) < 2:
        return None
    heading = [cell.strip() for cell in rows[0]]
    column = next((name for name in heading if name.startswith("Value")), None)
    if "__name__" in heading and column is not None:
        metrics = [dict(zip(heading, row, strict=True)) for row in rows[1:] if len(row) == len(heading)]
        lines = [
            _write_metric(row["__name__"], {key: row[key] for key in row if key not in ("Time", column)}, row[column])
            for row in metrics
        ]
        return "".join(f"{line}\n" for line in lines) or None
    lines = []
    for number, name in enumerate(heading):
        values = [row[number] for row in rows[1:] if number < len(row) and row[number].strip()]
        if "{" in name and _METRIC_NAME.fullmatch(name) and values:
            lines.append(f"{name} {values[-1]}")
    return "".join(f"{line}\n" for line in lines) or None
