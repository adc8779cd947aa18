"""A node of another make: upstream's wire as it is described, in memory, on a free port.

It gives each proposal an id of its own, knows no question, no explanation and no idempotency, and
has no document of discovery.
"""

import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

KEY = "cqa.v1.0123456789abcdef0123456789abcdef.secret"


class Upstream:
    """`units` by id; all are approved at once, so that one test can ask for them."""

    def __init__(self):
        self.units, self.lock = {}, threading.Lock()
        node = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.answer(*node.get(urlsplit(self.path)))

            def do_POST(self):
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.headers.get("Authorization") != f"Bearer {KEY}":
                    return self.answer(401, {"detail": "Invalid API key"})
                return self.answer(*node.post(urlsplit(self.path).path, json.loads(raw or b"{}")))

            def answer(self, status, body):
                raw = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.addr = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def get(self, url):
        if url.path == "/api/v1/knowledge/stats":
            return 200, {
                "total_units": len(self.units),
                "tiers": {},
                "total_count": len(self.units),
                "tier_counts": {"private": len(self.units)},
                "domain_counts": {},
                "recent": [],
                "confidence_distribution": {"0.3-0.5": 0, "0.5-0.7": len(self.units)},
            }
        if url.path == "/api/v1/knowledge":
            asked = parse_qs(url.query)
            if "domains" not in asked:
                return 422, {"detail": [{"loc": ["query", "domains"], "msg": "Field required"}]}
            found = [
                unit for unit in self.units.values() if {*unit["domains"]} & {*asked["domains"]}
            ]
            limit = int(asked.get("limit", ["5"])[0])
            return 200, {"data": [{**unit, "created_by": ""} for unit in found[:limit]]}
        return 404, {"detail": "Not Found"}

    def post(self, path, body):
        if path == "/api/v1/knowledge":
            if not body.get("domains"):
                return 422, {"detail": [{"loc": ["body", "domains"], "msg": "Field required"}]}
            unit = {
                "id": f"ku_{uuid.uuid4().hex}",
                "version": 1,
                "domains": body["domains"],
                "insight": body["insight"],
                "context": body.get("context") or {},
                "evidence": {"confidence": 0.5, "confirmations": 1},
                "tier": "private",
                "created_by": "carl",
                "flags": [],
            }
            with self.lock:
                self.units[unit["id"]] = unit
            return 201, unit
        _, _, _, _, id, verb = (*path.split("/"), "", "")[:6]
        unit = self.units.get(id)
        if unit is None:
            return 404, {"detail": "Knowledge unit not found"}
        step = 0.1 if verb == "confirmations" else -0.15
        unit["evidence"]["confidence"] = round(unit["evidence"]["confidence"] + step, 4)
        if verb == "confirmations":
            unit["evidence"]["confirmations"] += 1
        else:
            unit["flags"].append({"reason": body["reason"]})
        return 201, unit
