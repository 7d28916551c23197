"""Runs in the guest: commands come as lines of JSON over a virtio port, and their answers go back so."""

import json
import subprocess
import time

PORT = "/dev/virtio-ports/lab"


def answer(asked: dict) -> dict:
    """Run one command: its exit code (none: it took too long), what it printed, seconds."""
    began = time.monotonic()
    try:
        if "path" in asked:  # a file to write, in one piece and without a process
            write_file(asked["path"], asked["input"].encode())
            return {"code": 0, "out": "", "err": "", "seconds": 0.0}
        done = subprocess.run(
            asked["argv"], input=asked.get("input", ""), capture_output=True, text=True, timeout=asked["timeout"]
        )
        output = {"code": done.returncode, "out": done.stdout, "err": done.stderr}
    except subprocess.TimeoutExpired:
        output = {"code": None, "out": "", "err": f"no answer in {asked['timeout']} s"}
    except OSError as error:
        output = {"code": 127, "out": "", "err": str(error)}
    return output | {"seconds": round(time.monotonic() - began, 2)}


def write_file(path: str, content: bytes) -> None:
    """Write a file anew."""
    with open(path, "wb", buffering=0) as file:
        while content:
            content = content[file.write(content) :]


def serve() -> None:
    """Until the guest ends."""
    with open(PORT, "r+b", buffering=0) as port:
        port.write(b'{"ready": true}\n')
        remaining = b""
        while True:
            remaining += port.read(1 << 16) or b""
            while b"\n" in remaining:
                line, _, remaining = remaining.partition(b"\n")
                reply = memoryview(json.dumps(answer(json.loads(line))).encode() + b"\n")
                while reply:
                    reply = reply[port.write(reply[: 1 << 15]) :]


if __name__ == "__main__":
    serve()
