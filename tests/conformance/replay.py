"""Serves the bytes of one recorded answer to a client, on this machine."""

import contextlib
import http.server
import json
import threading


@contextlib.contextmanager
def served(exchange):
    """The address of a server that gives this answer to whoever asks."""
    response = exchange["response"]
    body = bytes.fromhex(response["body"])

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self.send_response(response["status"])
            for name, value in response["headers"]:
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def differences(ours: dict, theirs: dict) -> list[str]:
    """Where two readings of the same answer differ, of what the client's reading holds."""
    return [f"{key}: we {ours[key]!r}, the client {value!r}" for key, value in theirs.items() if ours[key] != value]


def is_form(ours: dict, calls: list) -> bool:
    """Whether the calls that the client reads are of the tool that stands for a form of the answer: we read the first
    as the answer's text, and the others as nothing."""
    if ours["calls"] or not calls or not ours["text"]:
        return False
    try:
        return json.loads(ours["text"]) == calls[0]
    except ValueError:
        return False
