// The second line of the official TypeScript SDK, in both eras: `initialize` with one supported version, and
// `server/discover` pinned to the modern one.

import { readFileSync } from "node:fs";
import {
  Client,
  InsufficientScopeError,
  ProtocolError,
  ResourceNotFoundError,
  SdkHttpError,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { endpoint, run } from "./checks.js";

const MODERN = "2026-07-28";

async function connect({ version, key, fetch }) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const transport = new StreamableHTTPClientTransport(endpoint, { requestInit: { headers }, fetch });
  const options =
    version === MODERN ? { versionNegotiation: { mode: { pin: MODERN } } } : { supportedProtocolVersions: [version] };
  const client = new Client({ name: "interop", version: "1.0.0" }, options);
  await client.connect(transport);
  return {
    version: () => client.getNegotiatedProtocolVersion(),
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
  if (error instanceof InsufficientScopeError) {
    return { status: 403, message: error.message, scope: error.requiredScope };
  }
  if (error instanceof SdkHttpError) return { status: error.status, message: error.message };
  // The SDK gives either era's code this class, which is how it tells a missing resource from a bad parameter.
  if (error instanceof ResourceNotFoundError) return { missing: error.uri };
  if (error instanceof ProtocolError) return { code: error.code, message: error.message };
  throw error;
}

const { version } = JSON.parse(readFileSync("node_modules/@modelcontextprotocol/client/package.json"));
await run(`typescript client ${version}`, ["2025-03-26", "2025-06-18", "2025-11-25", MODERN], { connect, fault });
