# The program of the chapter "Coming from other frameworks", written with Pydantic AI. Arguments: MODEL MESSAGE.
import sys
from pathlib import Path

from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, ModelMessagesTypeAdapter, ToolDenied


class Refunded(BaseModel):
    text: str
    cents: int


desk = Agent(f"openai-chat:{sys.argv[1]}", output_type=[Refunded, DeferredToolRequests])


@desk.tool_plain(requires_approval=True)
def refund(order: str, cents: int) -> str:
    """Pays a part of an order's price back."""
    return f"refunded {cents} cents of order {order}"


kept = Path("desk.json")
history = ModelMessagesTypeAdapter.validate_json(kept.read_bytes()) if kept.exists() else None
result = desk.run_sync(sys.argv[2], message_history=history)
while isinstance(result.output, DeferredToolRequests):
    answers = {}
    for call in result.output.approvals:
        print(f"{call.tool_name} {call.args_as_json_str()}? [y/N]")
        answers[call.tool_call_id] = input() == "y" or ToolDenied("The person said no.")
    decided = result.output.build_results(approvals=answers)
    result = desk.run_sync(message_history=result.all_messages(), deferred_tool_results=decided)
kept.write_bytes(result.all_messages_json())
print(f"{result.output.text} ({result.output.cents} cents)")
