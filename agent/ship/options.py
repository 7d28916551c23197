"""Which target an address names, checked before anything is sent; then with its secrets, which are read from files."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from agent.loopback import is_loopback
from agent.ship.target import BadTarget, Target

if TYPE_CHECKING:
    from agent.ship.http_target import TlsFiles

SCHEMES = ("file", "http", "https", "s3")
METHODS = ("POST", "PUT")
COMPRESSIONS = ("gzip", "zstd", "none")
_TOKEN_LIMIT_BYTES = 1 << 14


class TargetOptions(NamedTuple):
    """Where to, and what goes with it."""

    to: str
    method: str = "POST"
    compress: str = "gzip"
    token_file: str | None = None
    cert: str | None = None
    key: str | None = None
    ca: str | None = None
    endpoint: str | None = None
    region: str | None = None
    credentials: str | None = None


def check_options(options: TargetOptions) -> SplitResult:
    """The address in parts, where all of it can be meant; nothing is read. Raises BadTarget."""
    url = _split(options.to, "--to")
    if url.scheme not in SCHEMES:
        raise BadTarget(f"--to {url.scheme}://: the address is a folder, or one of {', '.join(SCHEMES)}")
    if options.method not in METHODS:
        raise BadTarget(f"--method {options.method[:20]}: it is POST or PUT")
    if options.compress not in COMPRESSIONS:
        raise BadTarget(f"--compress {options.compress[:20]}: it is one of {', '.join(COMPRESSIONS)}")
    is_http, is_s3 = url.scheme in ("http", "https"), url.scheme == "s3"
    for option, value, applies in (
        ("--token-file", options.token_file, is_http),
        ("--cert", options.cert, is_http or is_s3),
        ("--key", options.key, is_http or is_s3),
        ("--ca", options.ca, is_http or is_s3),
        ("--endpoint", options.endpoint, is_s3),
        ("--region", options.region, is_s3),
        ("--credentials", options.credentials, is_s3),
    ):
        if value and not applies:
            raise BadTarget(f"{option} is not used with this address")
    if options.key and not options.cert:
        raise BadTarget("--key goes with --cert")
    if url.scheme == "http" and (options.cert or options.ca):
        raise BadTarget("--cert and --ca are for https")
    if url.scheme == "http" and options.token_file and not is_loopback(url.hostname or ""):
        raise BadTarget("--token-file: a token is not sent without TLS; the address has to begin with https://")
    if is_s3:
        _check_bucket(url)
    return url


def open_target(options: TargetOptions, environment: Mapping[str, str]) -> Target:
    """The target with its secrets and certificates. Raises BadTarget."""
    url = check_options(options)
    if url.scheme == "file":
        from agent.ship.target import FolderTarget

        return FolderTarget(os.path.abspath(unquote(url.path)), options.compress)
    from agent.ship.http_target import HttpTarget, TlsFiles

    tls = TlsFiles(options.cert, options.key, options.ca)
    try:
        if url.scheme == "s3":
            return _open_bucket(url, options, tls, environment)
        token = _read_token(options.token_file) if options.token_file else None
        return HttpTarget(url, options.method, options.compress, token, tls)
    except OSError as error:
        raise BadTarget(error.strerror or "TLS cannot be set up") from error


def _open_bucket(url: SplitResult, options: TargetOptions, tls: TlsFiles, environment: Mapping[str, str]) -> Target:
    from agent.ship.s3 import Bucket, S3Target, load_credentials

    custom = options.endpoint or environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    endpoint = _split(custom, "--endpoint") if custom else None
    if endpoint is not None and (
        endpoint.scheme not in ("http", "https") or endpoint.path.strip("/") or endpoint.query
    ):
        raise BadTarget("--endpoint: it is https://HOST or https://HOST:PORT")
    if endpoint is not None and endpoint.scheme == "http" and (options.cert or options.ca):
        raise BadTarget("--cert and --ca are for https")
    region = options.region or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    if not re.fullmatch(r"[A-Za-z0-9-]{1,60}", region):
        raise BadTarget("--region: no region is called so")
    prefix = unquote(url.path).strip("/")
    bucket = Bucket(url.netloc, f"{prefix}/" if prefix else "", region, endpoint)
    return S3Target(bucket, options.compress, load_credentials(environment, options.credentials), tls)


def _split(text: str, option: str) -> SplitResult:
    """An address in parts; what has no scheme is a folder. Its text is not repeated where it may hold a secret."""
    if not text:
        raise BadTarget(f"{option} is empty")
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text):
        return SplitResult("file", "", text.replace("%", "%25"), "", "")
    if re.search(r"[\x00-\x20\x7f]", text):
        raise BadTarget(f"{option}: the address has a blank or a control character")
    try:
        url = urlsplit(text)
        if url.port == 0:
            raise ValueError
    except ValueError as error:
        raise BadTarget(f"{option}: not a valid address") from error
    if "@" in url.netloc:
        raise BadTarget(f"{option}: a user name or password in the address is visible to others: use --token-file")
    if url.fragment:
        raise BadTarget(f"{option}: '#' has no meaning in the address")
    if url.scheme == "file" and (url.netloc not in ("", "localhost") or not url.path.startswith("/")):
        raise BadTarget(f"{option}: file:// is followed by a whole path: file:///srv/reports")
    if url.scheme in ("http", "https") and not url.hostname:
        raise BadTarget(f"{option}: the address names no host")
    return url


def _check_bucket(url: SplitResult) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{1,62}", url.netloc):
        raise BadTarget("--to: s3:// is followed by a bucket and a prefix: s3://bucket/some/where")
    if {".", ".."} & set(url.path.split("/")) or "//" in url.path:
        raise BadTarget("--to: a prefix is names between slashes")
    if url.query:
        raise BadTarget("--to: '?' has no meaning in s3://")


def _read_token(path: str) -> str:
    """One line of a file. Raises BadTarget, which does not repeat it."""
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_TOKEN_LIMIT_BYTES + 1).strip()
    except OSError as error:
        raise BadTarget(f"{path}: {error.strerror}") from error
    if stat.S_ISREG(mode) and mode & 0o007:
        raise BadTarget(f"{path}: all users of this host can read this token: chmod o= {path}")
    if not data:
        raise BadTarget(f"{path}: no token in it")
    if len(data) > _TOKEN_LIMIT_BYTES or not re.fullmatch(rb"[\x21-\x7e]+", data):
        raise BadTarget(f"{path}: a token is one word")
    return data.decode("ascii")
