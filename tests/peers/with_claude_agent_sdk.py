# The program of the chapter "Coming from other frameworks", written with the Claude Agent SDK. Arguments: MODEL MESSAGE.
# Checked by reading only: it starts the program of Anthropic's coding agent, which needs an account.
import asyncio
import sys
from pathlib import Path

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    create_sdk_mcp_server,
    tool,
)
from pydantic import BaseModel


class Refunded(BaseModel):
    text: str
    cents: int


@tool("refund", "Pays a part of an order's price back.", {"order": str, "cents": int})
async def refund(args):
    text = f"refunded {args['cents']} cents of order {args['order']}"
    return {"content": [{"type": "text", "text": text}]}


async def ask(name, args, context):
    print(f"{name} {args}? [y/N]")
    return PermissionResultAllow() if input() == "y" else PermissionResultDeny(message="The person said no.")


async def main():
    kept = Path("desk.session")
    options = ClaudeAgentOptions(
        model=sys.argv[1],
        tools=[],
        setting_sources=[],
        mcp_servers={"desk": create_sdk_mcp_server("desk", tools=[refund])},
        can_use_tool=ask,
        output_format={"type": "json_schema", "schema": Refunded.model_json_schema()},
        resume=kept.read_text() if kept.exists() else None,
    )
    async with ClaudeSDKClient(options) as client:
        await client.query(sys.argv[2])
        async for message in client.receive_response():
            if isinstance(message, ResultMessage):
                kept.write_text(message.session_id)
                answer = Refunded.model_validate(message.structured_output)
                print(f"{answer.text} ({answer.cents} cents)")


asyncio.run(main())
