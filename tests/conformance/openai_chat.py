"""Chat completions, against the package `openai`."""

import json

import openai
from openai.types.chat import completion_create_params

import replay
import strict

# Fields of services that are not OpenAI: their own documentation names them.
EXTRA = {
    "openai": (),
    "openrouter": ("reasoning",),
    "groq": ("reasoning",),
    "cerebras": ("reasoning",),
    "deepseek": ("thinking", "reasoning_content"),
    "moonshot": ("thinking", "reasoning_content"),
    "zai": ("thinking", "reasoning_content"),
    "vllm": ("chat_template_kwargs",),
    "llamacpp": ("chat_template_kwargs", "reasoning_content"),
}

REASONS = {"stop": "stop", "length": "length", "tool_calls": "toolUse", "function_call": "toolUse"}


def check_request(exchange):
    body = json.loads(exchange["sent"]["body"])
    provider = exchange["provider"].split("@")[0]
    extra = EXTRA.get(provider, ())
    faults = []
    if provider == "mistral":
        faults = [f for message in body["messages"] for f in take_document_faults(message)]
    return faults + strict.faults(completion_create_params.CompletionCreateParamsStreaming, body, extra)


def take_document_faults(message):
    """Takes out the documents in Mistral's own form, which the package does not know, and checks them."""
    if not isinstance(message.get("content"), list):
        return
    for part in [part for part in message["content"] if part.get("type") == "document_url"]:
        message["content"].remove(part)
        if set(part) - {"document_name"} != {"type", "document_url"}:
            yield f"document_url: {sorted(part)}"


def check_answer(exchange):
    """None for what OpenAI's own client cannot read: answers in forms that only other services use."""
    ours = exchange["heard"]
    with replay.served(exchange) as url:
        client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
        try:
            theirs = read(client)
        except openai.APIError:
            return [] if "error" in ours else ["the client reads an error, and we do not"]
        except (TypeError, AttributeError, KeyError, ValueError):
            return None
    if theirs is None:
        return None
    if "error" in ours:
        return [f"we read the error {ours['error']}, and the client an answer"]
    names = {"files__read": "files.read"}
    calls = [(call["id"], call["name"], call["malformed"] or call["arguments"]) for call in ours["calls"]]
    theirs["calls"] = [(id, names.get(name, name), parsed(text)) for id, name, text in theirs["calls"]]
    # The client has one word for these; which it was stands in fields that it does not know.
    reason = {"stopSequence": "stop", "refusal": "stop"}.get(ours["stop_reason"], ours["stop_reason"])
    return replay.differences({**ours, "calls": calls, "stop_reason": reason}, theirs)


def parsed(text):
    try:
        # No arguments: some services write null.
        return (json.loads(text) if text else None) or {}
    except ValueError:
        return text


def read(client):
    """What the client reads; none for a stream without an answer, which it takes for one that says nothing."""
    text, calls, reason, usage = "", {}, None, None
    stream = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "hi"}], stream=True, stream_options={"include_usage": True}
    )
    for chunk in stream:
        if not hasattr(chunk, "choices"):
            continue
        usage = getattr(chunk, "usage", None) or usage
        for choice in chunk.choices or []:
            if getattr(choice, "index", 0):
                continue
            # Whole answers beside or in place of pieces: forms of other services.
            if "message" in (choice.model_extra or {}):
                return None
            delta = choice.delta
            # Only what has the form that the package declares can be compared.
            if not isinstance(delta.content or "", str) or "function_call" in delta.model_fields_set:
                return None
            text += (delta.content or "") + (getattr(delta, "refusal", None) or "")
            for call in delta.tool_calls or []:
                if call.index is None or not isinstance(call.function.arguments or "", str):
                    return None
                known = calls.setdefault(call.index, [call.id, call.function.name, ""])
                if call.id not in (None, known[0]):
                    return None
                known[2] += call.function.arguments or ""
            reason = choice.finish_reason or reason
    if "<think" in text.lower() or reason not in REASONS:
        return None
    theirs = {"text": text, "calls": [tuple(call) for call in calls.values()], "stop_reason": REASONS[reason]}
    if calls:
        # The calls count and not the word.
        theirs["stop_reason"] = "length" if reason == "length" else "toolUse"
    if usage:
        inputs = usage.prompt_tokens_details
        cached = inputs and inputs.cached_tokens
        if getattr(inputs, "cache_write_tokens", None):
            # OpenAI counts no written tokens.
            return theirs
        details = usage.completion_tokens_details
        thought = (details and details.reasoning_tokens) or 0
        beside = usage.total_tokens == usage.prompt_tokens + usage.completion_tokens + thought
        theirs["usage"] = {
            "input": usage.prompt_tokens - (cached or 0),
            "output": usage.completion_tokens + (thought if beside else 0),
            "cache_read": cached or 0,
            "cache_write": 0,
            "total_tokens": usage.total_tokens or 0,
        }
    return theirs
