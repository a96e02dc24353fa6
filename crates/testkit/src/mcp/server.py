"""A server on the official SDK, for the tests of the clients beside it."""

import os
import sys
from typing import Annotated

import anyio
from pydantic import BaseModel

from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve

server = MCPServer('counterpart', version='1.2.3')


class Sum(BaseModel):
    sum: int


class Person(BaseModel):
    name: str


@server.tool()
async def add(a: int, b: int) -> Sum:
    """Adds."""
    return Sum(sum=a + b)


@server.tool()
async def count(steps: int, millis: int, ctx: Context) -> int:
    """Counts, and says how far it is."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f'step {step + 1}')
        await anyio.sleep(millis / 1000)
    return steps


async def who() -> Elicit[Person]:
    return Elicit('what is your name?', Person)


@server.tool()
async def greet(person: Annotated[ElicitationResult[Person], Resolve(who)]) -> str:
    """Greets whoever it is told."""
    return f'hello {person.data.name}' if isinstance(person, AcceptedElicitation) else person.action


@server.tool()
async def variable(name: str) -> str:
    """What the process was started with."""
    return os.getcwd() if name == 'cwd' else os.environ.get(name, '')


@server.tool()
async def fail(text: str) -> str:
    """Fails."""
    raise ValueError(text)


@server.tool()
async def die(text: str) -> str:
    """Complains, and ends the process."""
    print(text, file=sys.stderr, flush=True)
    os._exit(3)


server.run()
