"""The official Python client against agents as models: whole and streamed, over both endpoints.

    openai_clients.py URL
"""

import sys

import openai

URL = sys.argv[1]
client = openai.OpenAI(base_url=URL, api_key="none", max_retries=2)


def chat(text, **fields):
    messages = [{"role": "user", "content": text}]
    return client.chat.completions.create(model="desk", messages=messages, **fields)


def check(what, ours, expected):
    if ours != expected:
        sys.exit(f"{what}: {ours!r}, and not {expected!r}")


def check_models():
    check("models", [model.id for model in client.models.list()], ["desk", "brief"])
    check("a model", client.models.retrieve("desk").owned_by, "archon")


def check_chat():
    for text, expected in [("hello you", "You said: hello you"), ("look it", "I look it up.\n\nDone: it is 42.")]:
        whole = chat(text)
        check("a completion", whole.choices[0].message.content, expected)
        check("its end", whole.choices[0].finish_reason, "stop")
        chunks = list(chat(text, stream=True, stream_options={"include_usage": True}))
        spoken = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
        check("a stream", "".join(spoken), expected)
        check("its pieces", len([piece for piece in spoken if piece]) > 2, True)
        check("its usage", chunks[-1].usage, whole.usage)
        with client.chat.completions.stream(model="desk", messages=[{"role": "user", "content": text}]) as stream:
            final = stream.get_final_completion()
        check("the sum of a stream", final.choices[0].message.content, expected)
    raw = client.chat.completions.with_raw_response.create(
        model="desk", messages=[{"role": "user", "content": "step Paris"}]
    )
    run, waiting = raw.headers["x-archon-run"], raw.parse()
    check("a run that waits", waiting.choices[0].finish_reason, "length")
    check("its text", run in waiting.choices[0].message.content, True)


def check_responses():
    for text, expected in [("hello you", ["You said: hello you"]), ("look it", ["I look it up.", "Done: it is 42."])]:
        whole = client.responses.create(model="desk", input=text)
        check("a response", [item.content[0].text for item in whole.output], expected)
        check("its text", whole.output_text, "".join(expected))
        check("its status", whole.status, "completed")
        events = list(client.responses.create(model="desk", input=text, stream=True))
        check("its numbers", [event.sequence_number for event in events], list(range(len(events))))
        spoken = [event.delta for event in events if event.type == "response.output_text.delta"]
        check("a stream", "".join(spoken), "".join(expected))
        check("its pieces", len(spoken) > len(expected), True)
        check("its usage", events[-1].response.usage, whole.usage)
        with client.responses.stream(model="desk", input=text) as stream:
            final = stream.get_final_response()
        check("the end of a stream", final.output_text, whole.output_text)
        check("a response that is read", client.responses.retrieve(whole.id).output_text, whole.output_text)
    first = client.responses.create(model="desk", input="first")
    following = client.responses.create(model="desk", input="recall", previous_response_id=first.id)
    check("a conversation", following.output_text, "user: first\nassistant: You said: first\nuser: recall")
    again = client.responses.create(model="desk", input="recall", conversation=following.conversation.id)
    check("the same conversation", again.output_text.startswith(following.output_text), True)
    waiting = client.responses.create(model="desk", input="step Paris")
    check("a response that waits", (waiting.status, waiting.incomplete_details), ("incomplete", None))
    check("a response that is cancelled", client.responses.cancel(waiting.id).status, "cancelled")
    failed = client.responses.create(model="desk", input="fail")
    check("a response that failed", (failed.status, failed.error.code), ("failed", "server_error"))
    events = [event.type for event in client.responses.create(model="desk", input="fail", stream=True)]
    check("a stream that failed", events[-1], "response.failed")


def check_errors():
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    for field, value in [("tools", [tool]), ("n", 2), ("seed", 7), ("temperature", 0.5)]:
        try:
            chat("hello", **{field: value})
        except openai.BadRequestError as error:
            check("the refused field", error.param, field)
        else:
            sys.exit(f"{field} was not refused")
    try:
        client.responses.create(model="nobody", input="hello")
    except openai.NotFoundError as error:
        check("an unknown model", error.code, "model_not_found")
    else:
        sys.exit("an unknown model was not refused")
    try:
        chat("fail")
    except openai.InternalServerError as error:
        check("a run that failed", error.code, "run_failed")
    else:
        sys.exit("a run that failed was no error")
    try:
        list(chat("fail", stream=True))
    except openai.APIError as error:
        check("a stream that failed", error.code, "run_failed")
    else:
        sys.exit("a stream that failed was no error")


check_models()
check_chat()
check_responses()
check_errors()
print(f"openai for Python {openai.__version__}: both endpoints, whole and streamed")
