# The program of the chapter "Coming from other frameworks", written with LangGraph. Arguments: MODEL MESSAGE.
import sys

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt
from pydantic import BaseModel


class Refunded(BaseModel):
    text: str
    cents: int


@tool
def refund(order: str, cents: int) -> str:
    """Pays a part of an order's price back."""
    if interrupt(f"Refund {cents} cents of order {order}") != "y":
        return "The person said no."
    return f"refunded {cents} cents of order {order}"


model = ChatOpenAI(model=sys.argv[1])


def think(state: MessagesState):
    return {"messages": [model.bind_tools([refund]).invoke(state["messages"])]}


graph = StateGraph(MessagesState)
graph.add_node("think", think)
graph.add_node("tools", ToolNode([refund]))
graph.add_edge(START, "think")
graph.add_conditional_edges("think", tools_condition)
graph.add_edge("tools", "think")

with SqliteSaver.from_conn_string("desk.db") as saver:
    desk = graph.compile(checkpointer=saver)
    thread = {"configurable": {"thread_id": "anna"}}
    state = desk.invoke({"messages": [("user", sys.argv[2])]}, thread)
    while "__interrupt__" in state:
        print(f"{state['__interrupt__'][0].value}? [y/N]")
        state = desk.invoke(Command(resume=input()), thread)
    answer = model.with_structured_output(Refunded).invoke(state["messages"])
    print(f"{answer.text} ({answer.cents} cents)")
