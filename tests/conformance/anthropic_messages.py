"""Anthropic's Messages, against the package `anthropic`."""

import json

import anthropic
from anthropic.types import message_create_params
from anthropic.types.beta import message_create_params as beta_params

import replay
import strict

REASONS = {"end_turn": "stop", "stop_sequence": "stopSequence", "max_tokens": "length", "tool_use": "toolUse"}


def check_request(exchange):
    body = json.loads(exchange["sent"]["body"])
    is_beta = any(name == "anthropic-beta" for name, _ in exchange["sent"]["headers"])
    types = beta_params if is_beta else message_create_params
    # The package has forgotten the temperature, which older models take and are sent.
    return strict.faults(types.MessageCreateParamsStreaming, body, ("temperature",))


def check_answer(exchange):
    ours = exchange["heard"]
    with replay.served(exchange) as url:
        client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
        try:
            with client.messages.stream(
                model="m", max_tokens=1, messages=[{"role": "user", "content": "hi"}]
            ) as stream:
                message = stream.get_final_message()
        except anthropic.APIError:
            return [] if "error" in ours else ["the client reads an error, and we do not"]
        except Exception:  # The client asserts the order of events, which we do not depend on.
            return None
    # What no message has is left to us: reasons that mean an error, arguments that are cut off (the client makes
    # up their end), and the tool that stands for a form of the answer, which we read as its text.
    if message.stop_reason not in REASONS or any(call["malformed"] for call in ours.get("calls", [])):
        return None
    if "error" in ours:
        return [f"we read the error {ours['error']}, the client an answer"]
    called = [block for block in message.content if block.type == "tool_use"]
    if replay.is_form(ours, [block.input for block in called]):
        return []
    blocks = message.content
    usage = message.usage
    names = {"files__read": "files.read"}
    theirs = {
        "text": "".join(block.text for block in blocks if block.type == "text"),
        "thinking": "".join(block.thinking for block in blocks if block.type == "thinking"),
        "calls": [(b.id, names.get(b.name, b.name), b.input) for b in blocks if b.type == "tool_use"],
        # The calls count and not the word.
        "stop_reason": "toolUse" if called else REASONS[message.stop_reason].replace("toolUse", "stop"),
        "model": message.model,
    }
    read = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_input_tokens or 0,
        "cache_write": usage.cache_creation_input_tokens or 0,
    }
    calls = [(call["id"], call["name"], call["malformed"] or call["arguments"]) for call in ours["calls"]]
    known = {key: ours["usage"][key] for key in read}
    return replay.differences({**ours, "calls": calls, "usage": known}, {**theirs, "usage": read})
