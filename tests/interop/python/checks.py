"""What every Python client must see at every protocol version.

A client is a function `connect(version, key, spoiled)` which gives a session as an async context, and a function
`fault` which says what its errors carry; nothing else here knows which SDK runs. A refusal is caught around the whole
session, because the first line of the SDK ends a session whose POST was refused.
"""

import json
import os
import re
import sys
import traceback
import urllib.request

BASE = os.environ["INTEROP_URL"]
KEY = os.environ["INTEROP_KEY"]
NARROW_KEY = os.environ["INTEROP_NARROW_KEY"]
ENDPOINT = f"{BASE}/mcp"

MODERN = "2026-07-28"
TRANSFER = {"bank": "VCB", "accountNumber": "0011001234567", "amount": 150000, "memo": "Tiền cà phê"}
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


class Client:
    def __init__(self, connect, fault, version):
        self._connect = connect
        self.fault = fault
        self.version = version

    def open(self, key=KEY, spoiled=False):
        return self._connect(self.version, key, spoiled)

    async def refused(self, use, key=KEY, spoiled=False):
        """What the one error carries that `use` must end with."""
        try:
            async with self.open(key, spoiled) as session:
                value = await use(session)
        except Exception as error:
            return self.fault(_innermost(error))
        raise AssertionError(f"expected a refusal, got {value!r}")


async def run(label, versions, connect, fault):
    """Runs all checks at each version and prints one line for each."""
    clean = True
    for version in versions:
        passed = failed = 0
        for check in CHECKS:
            if check is ping and version == MODERN:
                continue
            try:
                await check(Client(connect, fault, version))
                passed += 1
            except Exception:
                failed += 1
                print(f"{label} at {version}: {check.__name__}\n{traceback.format_exc()}", file=sys.stderr)
        print(f"{label} at {version}: {passed} passed, {failed} failed", flush=True)
        clean = clean and failed == 0
    sys.exit(0 if clean else 1)


def _innermost(error):
    """The one error inside the groups that task groups wrap around it."""
    while hasattr(error, "exceptions"):
        error = error.exceptions[0]
    return error


def spoil(body: bytes) -> bytes:
    """The answer of a server that breaks its own promise: `success` is no boolean."""
    return body.replace(b'"structuredContent":{"success":true', b'"structuredContent":{"success":"yes"')


async def negotiates_the_version(client):
    async with client.open() as session:
        assert session.version() == client.version, session.version()
        assert session.server().name == "switchbay"
        assert "developer-guide" in session.instructions()
        capabilities = session.capabilities().model_dump(exclude_none=True)
        assert set(capabilities) == {"tools", "resources"}, capabilities


async def lists_the_tools(client):
    async with client.open(key=None) as session:
        tools = {tool["name"]: tool for tool in await session.tools()}
        tool = tools["generate_bank_qr"]
        assert tool["title"] == "Generate a bank-transfer QR"
        assert tool["outputSchema"]["type"] == "object"
        assert tool["annotations"]["readOnlyHint"] is True
        assert tool["_meta"]["dev.switchbay/requiredScopes"] == ["bank-qr:generate"]
        assert "list_bank_qr_banks" in tools


async def calls_generate_bank_qr(client):
    async with client.open() as session:
        result = await session.call("generate_bank_qr", TRANSFER)
        assert result["isError"] is False
        structured = result["structuredContent"]
        assert json.loads(result["content"][0]["text"]) == structured
        assert re.fullmatch(r"000201010212.*6304[0-9A-F]{4}", structured["data"]["qr"]["payload"])
        assert structured == _rest("/api/v1/tools/bank-qr", TRANSFER)


async def calls_list_bank_qr_banks(client):
    async with client.open() as session:
        result = await session.call("list_bank_qr_banks", {})
        assert result["isError"] is False
        data = result["structuredContent"]["data"]
        assert len(data["banks"]) == data["count"] > 0


async def checks_results_against_the_output_schema(client):
    """Proves that the validation which the calls above passed was really on."""
    fault = await client.refused(lambda session: session.call("list_bank_qr_banks", {}), spoiled=True)
    assert "Invalid structured content" in fault["message"], fault


async def reads_a_refused_argument(client):
    async with client.open() as session:
        result = await session.call("generate_bank_qr", {**TRANSFER, "bank": "no such bank"})
        assert result["isError"] is True
        assert result.get("structuredContent") is None
        envelope = json.loads(result["content"][0]["text"])
        assert envelope["success"] is False
        assert envelope["error"]["code"] == "VALIDATION_ERROR"
        assert envelope["data"]["field"] == "bank"
        assert UUID.fullmatch(envelope["data"]["requestId"])


async def reads_an_unknown_argument(client):
    async with client.open() as session:
        result = await session.call("generate_bank_qr", {**TRANSFER, "holder": "me"})
        assert result["isError"] is True
        assert json.loads(result["content"][0]["text"])["data"]["field"] == "holder"


async def is_refused_an_unknown_tool(client):
    fault = await client.refused(lambda session: session.call("no_such_tool", {}))
    assert fault["code"] == -32602, fault
    assert fault["message"] == "Unknown tool: no_such_tool", fault


async def is_refused_without_a_credential(client):
    fault = await client.refused(lambda session: session.call("list_bank_qr_banks", {}), key=None)
    assert fault["status"] == 401, fault
    assert fault.get("envelope", "UNAUTHORIZED") == "UNAUTHORIZED", fault


async def is_refused_without_the_scope(client):
    async with client.open(key=NARROW_KEY) as session:
        assert (await session.call("list_bank_qr_banks", {}))["isError"] is False
    fault = await client.refused(lambda session: session.call("generate_bank_qr", TRANSFER), key=NARROW_KEY)
    assert fault["status"] == 403, fault
    assert fault.get("envelope", "FORBIDDEN") == "FORBIDDEN", fault


async def lists_the_resources(client):
    async with client.open(key=None) as session:
        uris = [resource["uri"] for resource in await session.resources()]
        assert uris == ["service://developer-guide", "service://openapi"], uris
        assert await session.templates() == []


async def reads_the_developer_guide(client):
    await _is_served(client, "developer-guide", "/developer-guide")


async def reads_the_openapi_document(client):
    await _is_served(client, "openapi", "/openapi.json")


async def is_refused_an_unknown_resource(client):
    fault = await client.refused(lambda session: session.read("service://nothing"))
    assert fault["code"] == (-32602 if client.version == MODERN else -32002), fault


async def ping(client):
    async with client.open() as session:
        await session.ping()


CHECKS = [
    negotiates_the_version,
    lists_the_tools,
    calls_generate_bank_qr,
    calls_list_bank_qr_banks,
    checks_results_against_the_output_schema,
    reads_a_refused_argument,
    reads_an_unknown_argument,
    is_refused_an_unknown_tool,
    is_refused_without_a_credential,
    is_refused_without_the_scope,
    lists_the_resources,
    reads_the_developer_guide,
    reads_the_openapi_document,
    is_refused_an_unknown_resource,
    ping,
]


async def _is_served(client, name, path):
    """A resource holds what HTTP serves, and is as long as the list says."""
    async with client.open() as session:
        listed = next(resource for resource in await session.resources() if resource["name"] == name)
        [content] = await session.read(listed["uri"])
        assert content["uri"] == listed["uri"]
        assert content["mimeType"] == listed["mimeType"]
        text = content["text"].encode()
        assert len(text) == listed["size"]
        with urllib.request.urlopen(f"{BASE}{path}") as response:
            assert text == response.read()


def _rest(path, body):
    headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
    request = urllib.request.Request(f"{BASE}{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as response:
        return json.load(response)
