"""Upstream's Python client at work: one call a line in, what came of it a line out, both JSON.

Run by an interpreter that has the package `cq-sdk`: `python -I sdk_script.py DATABASE`, with the
client's own variables around it. A call is [name, {argument: value}].
"""

import dataclasses
import json
import sys
from pathlib import Path

import cq
from cq.discovery import DiscoveryError, Resolver


def plain(value):
    """What the client gives, as JSON; models say themselves how they look."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value):
        return {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    return [plain(item) for item in value] if isinstance(value, list) else value


def outcome(client, name, arguments):
    if "tier" in arguments:
        arguments["tier"] = cq.Tier(arguments["tier"])
    if "reason" in arguments:
        arguments["reason"] = cq.FlagReason(arguments["reason"])
    try:
        if name == "discover":
            return {"result": plain(Resolver(cache_dir=None).resolve(client.addr))}
        return {"result": plain(getattr(client, name)(**arguments))}
    except cq.FallbackError as fault:
        return {"raised": "FallbackError", "kept": plain(fault.local_unit)}
    except cq.RemoteError as fault:
        return {"raised": "RemoteError", "status": fault.status_code, "detail": fault.detail}
    except (DiscoveryError, LookupError, RuntimeError, ValueError) as fault:
        return {"raised": type(fault).__name__, "detail": str(fault)}


with cq.Client(local_db_path=Path(sys.argv[1])) as client:
    for line in sys.stdin:
        print(json.dumps(outcome(client, *json.loads(line))), flush=True)
