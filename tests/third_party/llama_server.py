"""Serves a GGUF model with llama.cpp's own HTTP server (the package xllamacpp) on a free port of this machine while a
command runs, and ends with the command's exit code.

    llama_server.py MODEL.gguf COMMAND [ARG...]        every {url} in the arguments becomes the server's address
"""

import pathlib
import socket
import subprocess
import sys

import xllamacpp

def main() -> int:
    model, command = sys.argv[1], sys.argv[2:]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = 4096
    params.n_parallel = 1
    # Greedy, and short: a base model does not always know where to end.
    params.n_predict = 80
    params.sampling.temp = 0.0
    params.sampling.top_k = 1
    params.use_jinja = True
    params.chat_template = pathlib.Path(__file__).with_name("chat_template.jinja").read_text()
    server = xllamacpp.Server(params)
    url = f"{server.listening_address}/v1"
    return subprocess.run([word.replace("{url}", url) for word in command], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
