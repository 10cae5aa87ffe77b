"""Serves a GGUF model with llama.cpp's own HTTP server (the package xllamacpp) on a free port of this machine while a
command runs, and ends with the command's exit code.

    llama_server.py [--template FILE] [--most TOKENS] MODEL.gguf COMMAND [ARG...]

Every {url} in the arguments becomes the server's address.
"""

import argparse
import pathlib
import socket
import subprocess
import sys

import xllamacpp

def main() -> int:
    words = argparse.ArgumentParser()
    words.add_argument("--template", default="chat_template.jinja", help="how a chat is put, in this folder")
    # A base model does not always know where to end.
    words.add_argument("--most", type=int, default=80, help="tokens of an answer")
    words.add_argument("model")
    words.add_argument("command", nargs=argparse.REMAINDER)
    given = words.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    params = xllamacpp.CommonParams()
    params.model.path = given.model
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = 4096
    params.n_parallel = 1
    # Greedy.
    params.n_predict = given.most
    params.sampling.temp = 0.0
    params.sampling.top_k = 1
    params.use_jinja = True
    params.chat_template = pathlib.Path(__file__).with_name(given.template).read_text()
    server = xllamacpp.Server(params)
    url = f"{server.listening_address}/v1"
    return subprocess.run([word.replace("{url}", url) for word in given.command], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
