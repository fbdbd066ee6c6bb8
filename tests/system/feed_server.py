"""A provider's feed on this machine: whatever list it is told to serve."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FeedServer:
    def __init__(self) -> None:
        self.offers: list[dict[str, Any]] = []
        feed = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps({"offers": feed.offers}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.place = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"http://{self.place}/offers.json"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def offer(number: int, **fields: Any) -> dict[str, Any]:
    facts = {
        "id": f"offer-{number}", "name": f"Offer {number}", "gpu": "RTX 4090", "gpu_count": 1, "gpu_memory_mib": 24564,
        "tier": "secure", "place": "DE", "hourly_usd": "0.66", "price_7_days_usd": "110.00", "lots": 2, "free_lots": 2,
    }  # fmt: skip
    return {**facts, **fields}
