"""A client on the official SDK for Python, which does what the standard input says: as typescript.mjs, with one client."""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


def say(line):
    print(json.dumps(line), flush=True)


async def main():
    options = json.loads(sys.argv[1])
    if "url" in options:
        transport = streamablehttp_client(options["url"])
    else:
        env = {**os.environ, **(options["env"] or {})}
        transport = stdio_client(StdioServerParameters(command=options["command"], args=options["args"], env=env))
    async with AsyncExitStack() as stack:
        streams = await stack.enter_async_context(transport)
        session = await stack.enter_async_context(ClientSession(*streams[:2]))
        await session.initialize()
        methods = {
            "tools/list": lambda params: session.list_tools(),
            "tools/call": lambda params: session.call_tool(params["name"], params["arguments"]),
        }

        async def answer(request):
            try:
                result = await methods[request["method"]](request["params"])
                say({"id": request["id"], "result": result.model_dump(mode="json", by_alias=True, exclude_none=True)})
            except Exception as error:
                say({"id": request["id"], "error": repr(error)})

        say({"id": 0, "result": {}})
        requests = set()  # asyncio itself does not keep its tasks
        while line := await asyncio.to_thread(sys.stdin.readline):
            requests.add(asyncio.create_task(answer(json.loads(line))))


asyncio.run(main())
