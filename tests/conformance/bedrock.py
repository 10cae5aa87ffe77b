"""Bedrock's ConverseStream, against the package `botocore`: parameters, signatures, frames."""

import datetime
import json
import unittest.mock
import urllib.parse

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import botocore.eventstream
import botocore.parsers
import botocore.session
import botocore.validate

import replay

SERVICE = botocore.session.Session().get_service_model("bedrock-runtime")
OPERATION = SERVICE.operation_model("ConverseStream")

# The example key of Amazon's documentation, with which the tests sign.
KEY_ID = "AKIDEXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


def check_request(exchange):
    sent = exchange["sent"]
    path = urllib.parse.urlsplit(sent["url"]).path
    model = urllib.parse.unquote(path.split("/model/")[1].removesuffix("/converse-stream"))
    parameters = {"modelId": model, **from_wire(json.loads(sent["body"]), OPERATION.input_shape)}
    report = botocore.validate.ParamValidator().validate(parameters, OPERATION.input_shape)
    faults = [report.generate_report()] if report.has_errors() else []
    # The validator lets pass what it does not know.
    faults += [f"{name}: no such field" for name in unknown(parameters, OPERATION.input_shape, "")]
    return faults + signature_faults(sent)


def signature_faults(sent):
    """Whether botocore signs the same request in the same way."""
    headers = dict(sent["headers"])
    ours = headers.get("authorization", "")
    if f"Credential={KEY_ID}/" not in ours:
        return []
    region = ours.split("/")[2]
    now = datetime.datetime.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ")
    credentials = botocore.credentials.Credentials(KEY_ID, SECRET, headers.get("x-amz-security-token"))
    request = botocore.awsrequest.AWSRequest(
        "POST", sent["url"], {"content-type": headers["content-type"]}, sent["body"].encode()
    )
    with unittest.mock.patch("botocore.auth.get_current_datetime", lambda: now):
        botocore.auth.SigV4Auth(credentials, "bedrock", region).add_auth(request)
    theirs = request.headers["Authorization"]
    SIGNED.append(theirs)
    return [] if ours == theirs else [f"signature: we {ours!r}, botocore {theirs!r}"]


SIGNED = []


def summary():
    """What else was compared, and how often."""
    yield "signatures", len(SIGNED)
    if len(set(SIGNED)) < 20:
        raise SystemExit(f"only {len(set(SIGNED))} signed requests were compared")


def unknown(value, shape, path):
    if shape.type_name == "structure" and isinstance(value, dict) and not getattr(shape, "is_document_type", False):
        for name, each in value.items():
            if name not in shape.members:
                yield f"{path}.{name}"
            else:
                yield from unknown(each, shape.members[name], f"{path}.{name}")
    elif shape.type_name == "list":
        for place, each in enumerate(value):
            yield from unknown(each, shape.member, f"{path}[{place}]")


def from_wire(value, shape):
    """Bytes stand on the wire in base64; botocore takes them as bytes."""
    if shape.type_name == "structure" and isinstance(value, dict):
        return {k: from_wire(v, shape.members[k]) if k in shape.members else v for k, v in value.items()}
    if shape.type_name == "list":
        return [from_wire(each, shape.member) for each in value]
    if shape.type_name == "blob":
        return value.encode()
    return value


def check_answer(exchange):
    ours = exchange["heard"]
    parser = botocore.eventstream.EventStreamBuffer()
    parser.add_data(bytes.fromhex(exchange["response"]["body"]))
    shape = OPERATION.output_shape.members["stream"]
    reader = botocore.parsers.EventStreamJSONParser()
    text, calls, stop, usage = "", {}, None, None
    try:
        for frame in parser:
            event = reader.parse(frame.to_response_dict(), shape)
            if "contentBlockStart" in event and "toolUse" in event["contentBlockStart"].get("start", {}):
                call = event["contentBlockStart"]["start"]["toolUse"]
                if call.get("type") == "server_tool_use":
                    return None  # Run by the service: no call of ours.
                calls[event["contentBlockStart"]["contentBlockIndex"]] = [call["toolUseId"], call["name"], ""]
            elif "contentBlockDelta" in event:
                delta = event["contentBlockDelta"]["delta"]
                text += delta.get("text", "")
                if "toolUse" in delta:
                    calls[event["contentBlockDelta"]["contentBlockIndex"]][2] += delta["toolUse"]["input"]
            elif "messageStop" in event:
                stop = event["messageStop"]["stopReason"]
            elif "metadata" in event:
                usage = event["metadata"].get("usage")
            elif frame.to_response_dict()["headers"].get(":message-type") == "exception":
                return [] if "error" in ours else ["botocore reads an exception, and we do not"]
    except Exception:  # Frames that are broken on purpose.
        return [] if "error" in ours else ["botocore refuses the frames, and we do not"]
    if "error" in ours or stop not in ("end_turn", "stop_sequence", "max_tokens", "tool_use"):
        return None
    names = {"files__read": "files.read"}
    theirs = {
        "text": text,
        "calls": [(id, names.get(name, name), json.loads(given or "{}")) for id, name, given in calls.values()],
    }
    if replay.is_form(ours, [given for _, _, given in theirs["calls"]]):
        return []
    known = {**ours, "calls": [(call["id"], call["name"], call["arguments"]) for call in ours["calls"]]}
    if usage:
        theirs["usage"] = {
            "input": usage["inputTokens"],
            "output": usage["outputTokens"],
            "cache_read": usage.get("cacheReadInputTokens", 0),
            "cache_write": usage.get("cacheWriteInputTokens", 0),
        }
        known["usage"] = {key: ours["usage"][key] for key in theirs["usage"]}
    return replay.differences(known, theirs)
