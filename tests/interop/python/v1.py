"""The first line of the official Python SDK, which asks for its newest version alone.

The constant is what its `initialize` asks for; everything after that is the SDK's own negotiation.
"""

import asyncio
from contextlib import asynccontextmanager
from importlib.metadata import version as installed

import httpx
from mcp import ClientSession, McpError, types
from mcp.client.streamable_http import streamable_http_client

import checks


class Spoiling(httpx.AsyncHTTPTransport):
    async def handle_async_request(self, request):
        response = await super().handle_async_request(request)
        body = checks.spoil(await response.aread())
        return httpx.Response(response.status_code, headers={"content-type": "application/json"}, content=body)


class Session:
    def __init__(self, session, initialized):
        self._session = session
        self._initialized = initialized

    def version(self):
        return self._initialized.protocolVersion

    def server(self):
        return self._initialized.serverInfo

    def instructions(self):
        return self._initialized.instructions

    def capabilities(self):
        return self._initialized.capabilities

    async def tools(self):
        return [_plain(tool) for tool in (await self._session.list_tools()).tools]

    async def call(self, name, arguments):
        return _plain(await self._session.call_tool(name, arguments))

    async def resources(self):
        return [_plain(resource) for resource in (await self._session.list_resources()).resources]

    async def templates(self):
        return (await self._session.list_resource_templates()).resourceTemplates

    async def read(self, uri):
        return [_plain(content) for content in (await self._session.read_resource(uri)).contents]

    async def ping(self):
        await self._session.send_ping()


@asynccontextmanager
async def connect(version, key, spoiled):
    types.LATEST_PROTOCOL_VERSION = version
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    transport = Spoiling() if spoiled else None
    async with (
        httpx.AsyncClient(headers=headers, transport=transport) as http,
        streamable_http_client(checks.ENDPOINT, http_client=http) as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        yield Session(session, await session.initialize())


def fault(error):
    match error:
        case httpx.HTTPStatusError():
            return {"status": error.response.status_code, "message": str(error)}
        case McpError():
            return {"code": error.error.code, "message": error.error.message}
        case RuntimeError():
            return {"message": str(error)}
        case _:
            raise error


def _plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


label = f"python mcp {installed('mcp')}"
asyncio.run(checks.run(label, ["2025-03-26", "2025-06-18", "2025-11-25"], connect, fault))
