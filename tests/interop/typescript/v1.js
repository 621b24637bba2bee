// The first line of the official TypeScript SDK, which asks for its newest version alone: the transport rewrites what
// `initialize` asks for, and everything after that is the SDK's own negotiation.

import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport, StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { McpError } from "@modelcontextprotocol/sdk/types.js";
import { endpoint, run } from "./checks.js";

class PinnedTransport extends StreamableHTTPClientTransport {
  constructor(url, options, version) {
    super(url, options);
    this.pinned = version;
  }

  setProtocolVersion(version) {
    this.negotiated = version;
    super.setProtocolVersion(version);
  }

  send(message, options) {
    if (message.method === "initialize") {
      message = { ...message, params: { ...message.params, protocolVersion: this.pinned } };
    }
    return super.send(message, options);
  }
}

async function connect({ version, key, fetch }) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const transport = new PinnedTransport(endpoint, { requestInit: { headers }, fetch }, version);
  const client = new Client({ name: "interop", version: "1.0.0" });
  await client.connect(transport);
  return {
    version: () => transport.negotiated,
    server: () => client.getServerVersion(),
    instructions: () => client.getInstructions(),
    capabilities: () => client.getServerCapabilities(),
    tools: () => client.listTools(),
    call: (name, arguments_) => client.callTool({ name, arguments: arguments_ }),
    resources: () => client.listResources(),
    templates: () => client.listResourceTemplates(),
    read: (uri) => client.readResource({ uri }),
    ping: () => client.ping(),
    close: () => client.close(),
  };
}

function fault(error) {
  if (error instanceof StreamableHTTPError) return { status: error.code, message: error.message };
  if (error instanceof McpError) return { code: error.code, message: error.message };
  throw error;
}

const { version } = JSON.parse(readFileSync("node_modules/@modelcontextprotocol/sdk/package.json"));
await run(`typescript sdk ${version}`, ["2025-03-26", "2025-06-18", "2025-11-25"], { connect, fault });
