"""Gemini and Vertex, against the package `google-genai`."""

import json
import re

import pydantic
from google import genai
from google.genai import types

import replay

REASONS = {"STOP": "stop", "MAX_TOKENS": "length"}

# Stands in an answer for an image whose data does not match its type; the client keeps such an image.
LEFT_OUT = re.compile(r"\[an image of the model, left out: [^]]*\]")

# Where the fields of a body have their types.
FIELDS = {
    "contents": list[types.Content],
    "systemInstruction": types.Content,
    "tools": list[types.Tool],
    "toolConfig": types.ToolConfig,
    "generationConfig": types.GenerationConfig,
    "safetySettings": list[types.SafetySetting],
    "cachedContent": str,
}


def check_request(exchange):
    faults = []
    for name, value in json.loads(exchange["sent"]["body"]).items():
        if name not in FIELDS:
            faults.append(f"{name}: no such field")
            continue
        try:
            # The package's models refuse what they do not know, and take the names of the wire.
            pydantic.TypeAdapter(FIELDS[name]).validate_json(json.dumps(value))
        except pydantic.ValidationError as error:
            faults += [f"{name}.{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:4]]
    return faults


def check_answer(exchange):
    ours = exchange["heard"]
    with replay.served(exchange) as url:
        options = types.HttpOptions(base_url=url, retry_options=types.HttpRetryOptions(attempts=1))
        client = genai.Client(api_key="none", http_options=options)
        text, thinking, calls, reason, usage = "", "", [], None, None
        try:
            for chunk in client.models.generate_content_stream(model="m", contents="hi"):
                usage = chunk.usage_metadata or usage
                for candidate in (chunk.candidates or [])[:1]:
                    reason = candidate.finish_reason or reason
                    for part in (candidate.content and candidate.content.parts) or []:
                        if part.function_call:
                            calls.append((part.function_call.name, part.function_call.args or {}))
                        elif part.thought:
                            thinking += part.text or ""
                        else:
                            text += part.text or ""
        except Exception:  # Errors of the service, and forms that the package does not know.
            return [] if "error" in ours else None
    if "error" in ours or reason is None or reason.name not in REASONS:
        return None
    names = {"files__read": "files.read"}
    theirs = {
        "text": text,
        "thinking": thinking,
        "calls": [(names.get(name, name), arguments) for name, arguments in calls],
        "stop_reason": "toolUse" if calls else REASONS[reason.name],
    }
    if replay.is_form(ours, [given for _, given in calls]):
        return []
    known = {**ours, "calls": [(call["name"], call["arguments"]) for call in ours["calls"]]}
    known["text"] = LEFT_OUT.sub("", known["text"])
    if usage:
        cached = usage.cached_content_token_count or 0
        theirs["usage"] = {
            "input": (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0) - cached,
            "output": (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0),
            "cache_read": cached,
        }
        known["usage"] = {key: ours["usage"][key] for key in theirs["usage"]}
    return replay.differences(known, theirs)
