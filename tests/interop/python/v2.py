"""The second line of the official Python SDK, in both eras.

Its `initialize` asks for the newest legacy version alone, so the constant is set to the one under test; the modern
version is what its own discovery chooses.
"""

import asyncio
from contextlib import asynccontextmanager
from importlib.metadata import version as installed

import httpx2
import mcp.client.session
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

import checks


class Spoiling(httpx2.AsyncHTTPTransport):
    async def handle_async_request(self, request):
        response = await super().handle_async_request(request)
        body = checks.spoil(await response.aread())
        return httpx2.Response(response.status_code, headers={"content-type": "application/json"}, content=body)


class Session:
    def __init__(self, client):
        self._client = client

    def version(self):
        return self._client.protocol_version

    def server(self):
        return self._client.server_info

    def instructions(self):
        return self._client.instructions

    def capabilities(self):
        return self._client.server_capabilities

    async def tools(self):
        return [_plain(tool) for tool in (await self._client.list_tools()).tools]

    async def call(self, name, arguments):
        return _plain(await self._client.call_tool(name, arguments))

    async def resources(self):
        return [_plain(resource) for resource in (await self._client.list_resources()).resources]

    async def templates(self):
        return (await self._client.list_resource_templates()).resource_templates

    async def read(self, uri):
        return [_plain(content) for content in (await self._client.read_resource(uri)).contents]

    async def ping(self):
        await self._client.session.send_ping()


@asynccontextmanager
async def connect(version, key, spoiled):
    mode = "auto"
    if version != checks.MODERN:
        mcp.client.session.LATEST_HANDSHAKE_VERSION = version
        mode = "legacy"
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    transport = Spoiling() if spoiled else None
    async with httpx2.AsyncClient(headers=headers, transport=transport) as http:
        server = streamable_http_client(checks.ENDPOINT, http_client=http)
        async with Client(server, mode=mode) as client:
            yield Session(client)


def fault(error):
    match error:
        case MCPError(error=inner) if inner.code > 0:
            return {"status": inner.code, "message": inner.message, "envelope": inner.data["error"]["code"]}
        case MCPError(error=inner):
            return {"code": inner.code, "message": inner.message}
        case RuntimeError():
            return {"message": str(error)}
        case _:
            raise error


def _plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


label = f"python mcp {installed('mcp')}"
versions = ["2025-03-26", "2025-06-18", "2025-11-25", checks.MODERN]
asyncio.run(checks.run(label, versions, connect, fault))
