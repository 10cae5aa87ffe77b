"""Compares what our providers send and understand with what the services' own clients do.

    providers.py EXCHANGES.jsonl

Each line of the file is one exchange with a fixture, written by the tests of `archon-providers`: the request that
we sent, the bytes of the answer, and what we understood. A module for each protocol says whether the service's own
types take the request, and what its client makes of the same bytes.
"""

import collections
import json
import sys

import anthropic_messages
import bedrock
import gemini
import openai_chat
import openai_responses

# How a protocol is told from others: by the end of the path.
PROTOCOLS = [
    ("/chat/completions", openai_chat),
    ("/responses", openai_responses),
    ("/messages", anthropic_messages),
    ("GenerateContent", gemini),
    ("/converse-stream", bedrock),
]


def main() -> int:
    seen, faults = set(), []
    counts = collections.Counter()
    with open(sys.argv[1], encoding="utf-8") as lines:
        exchanges = [json.loads(line) for line in lines]
    for exchange in exchanges:
        path = exchange["sent"]["url"].split("?")[0]
        module = next((module for end, module in PROTOCOLS if path.endswith(end)), None)
        if module is None:
            continue
        # Properties hold for any bytes, most of which no client reads.
        if exchange["test"].split("::")[-1].startswith("any_"):
            continue
        name = module.__name__
        where = f"{name}: {exchange['provider']}: {exchange['test']}"
        request = exchange["sent"]["body"]
        key = (name, exchange["provider"], exchange["sent"]["url"], json.dumps(exchange["sent"]["headers"]), request)
        if key not in seen:
            seen.add(key)
            counts[f"{name}: requests"] += 1
            faults += [f"{where}: request: {fault}" for fault in module.check_request(exchange)]
        response = exchange["response"]
        key = (name, response["body"])
        if response["status"] != 200 or response["breaks_off"] or key in seen:
            continue
        seen.add(key)
        verdict = module.check_answer(exchange)
        if verdict is None:
            counts[f"{name}: answers that the client cannot read"] += 1
            continue
        counts[f"{name}: answers"] += 1
        faults += [f"{where}: answer: {fault}" for fault in verdict]
    for _, module in PROTOCOLS:
        for what, count in getattr(module, "summary", list)():
            counts[f"{module.__name__}: {what}"] = count
    for name, count in sorted(counts.items()):
        print(f"{count:6}  {name}")
    if not counts:
        faults.append("there are no exchanges: were the tests run?")
    for fault in faults:
        print(f"FAULT: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
