"""Responses, against the package `openai`."""

import json

import openai
from openai.types.responses import response_create_params

import replay
import strict


def check_request(exchange):
    body = json.loads(exchange["sent"]["body"])
    return strict.faults(response_create_params.ResponseCreateParamsStreaming, body)


def check_answer(exchange):
    ours = exchange["heard"]
    with replay.served(exchange) as url:
        client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
        try:
            stream = client.responses.create(model="m", input="hi", stream=True)
            text, calls, last = "", {}, None
            for event in stream:
                match event.type:
                    case "response.function_call_arguments.start":
                        return None  # Another server's form.
                    case "error" | "response.failed":
                        return [] if "error" in ours else ["the client reads an error, and we do not"]
                    case "response.output_text.delta" | "response.refusal.delta":
                        text += event.delta
                    case "response.output_item.done" if event.item.type == "function_call":
                        calls[event.output_index] = (event.item.call_id, event.item.name, event.item.arguments)
                    case "response.completed" | "response.incomplete":
                        last = event
        except openai.APIError:
            return [] if "error" in ours else ["the client reads an error, and we do not"]
        except (TypeError, AttributeError, KeyError, ValueError):
            return None
    if last is None:
        is_stream = ["content-type", "text/event-stream"] in exchange["response"]["headers"]
        return ["the client reads no end, and we do"] if is_stream and "error" not in ours else None
    if "error" in ours:
        return [f"we read the error {ours['error']}, and the client an answer"]
    theirs = {"model": last.response.model}
    # Some answers are told in the forms of other servers, which only we put together.
    if text:
        theirs["text"] = text
    if calls:
        names = {"files__read": "files.read"}
        theirs["calls"] = [
            (id, names.get(name, name), json.loads(arguments or "{}"))
            for _, (id, name, arguments) in sorted(calls.items())
        ]
    usage = last.response.usage
    if usage and usage.input_tokens_details:
        cached = usage.input_tokens_details.cached_tokens or 0
        written = getattr(usage.input_tokens_details, "cache_write_tokens", None) or 0
        theirs["usage"] = {
            "input": usage.input_tokens - cached - written,
            "output": usage.output_tokens,
            "cache_read": cached,
            "cache_write": written,
            "total_tokens": usage.total_tokens or 0,
        }
    calls = [(call["id"], call["name"], call["malformed"] or call["arguments"]) for call in ours["calls"]]
    return replay.differences({**ours, "calls": calls}, theirs)
