// Access tokens of a real identity provider: got with the client's own credentials, got for a person by authorization
// code and PKCE, and used while the provider rotates its keys.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Client, ClientCredentialsProvider, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Agent, browse, clientToken } from "./agent.js";
import { startProvider, startSwitchbay } from "./processes.js";

const SCOPE = "bank-qr:banks";
const ROTATIONS = 3;
const WORKERS = 8;
const TRANSFER = { bank: "VCB", accountNumber: "0011001234567" };

const provider = await startProvider();
const { issuer } = provider;
const { base, stop } = await startSwitchbay(issuer);
const resource = `${base}/mcp`;

const bearer = (token) => ({ headers: { authorization: `Bearer ${token}` } });
const banks = (token) => fetch(`${base}/api/v1/tools/bank-qr/banks`, bearer(token));
const header = (token) => JSON.parse(Buffer.from(token.split(".")[0], "base64url"));

async function connect(authProvider) {
  const transport = new StreamableHTTPClientTransport(new URL(resource), { authProvider });
  const client = new Client({ name: "interop", version: "1.0.0" });
  await client.connect(transport);
  return { client, transport };
}

/** Checks that both faces refuse a token in the same words. */
async function isRefused(token, status, error) {
  const rest = await banks(token);
  assert.equal(rest.status, status);
  assert.ok(rest.headers.get("www-authenticate").startsWith(`Bearer error="${error}"`));
  const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "list_bank_qr_banks" } };
  const { headers } = bearer(token);
  const tool = await fetch(resource, {
    method: "POST",
    body: JSON.stringify(message),
    headers: { ...headers, accept: "application/json, text/event-stream", "content-type": "application/json" },
  });
  assert.equal(tool.status, status);
  assert.match(tool.headers.get("www-authenticate"), new RegExp(`^Bearer error="${error}", .*resource_metadata="`));
}

const checks = {
  "takes tokens of a client's own, by either algorithm": async () => {
    for (const [client, alg] of Object.entries({ machine: "RS256", "machine-es256": "ES256" })) {
      const token = await clientToken(issuer, { client, resource, scope: SCOPE });
      const { typ, alg: signed } = header(token);
      assert.deepEqual([typ, signed], ["at+jwt", alg]);
      assert.equal((await banks(token)).status, 200);
    }
  },

  "lets an MCP client find the provider and log itself in": async () => {
    const options = { clientId: "machine", clientSecret: "machine-secret", expectedIssuer: issuer };
    const { client } = await connect(new ClientCredentialsProvider(options));
    const { isError, structuredContent } = await client.callTool({ name: "list_bank_qr_banks", arguments: {} });
    assert.equal(isError, false);
    assert.ok(structuredContent.data.count > 0);
    await client.close();
  },

  "lets an MCP client send its user to the provider, with PKCE": async () => {
    const agent = Object.assign(new Agent(), { issuer });
    const { client, transport } = await connect(agent);
    const call = () => client.callTool({ name: "generate_bank_qr", arguments: TRANSFER });
    await assert.rejects(call, { name: "UnauthorizedError" });
    const { searchParams } = agent.authorization;
    assert.equal(searchParams.get("code_challenge_method"), "S256");
    assert.deepEqual([searchParams.get("resource"), searchParams.get("scope")], [resource, "bank-qr:generate"]);
    await transport.finishAuth(agent.callback.searchParams);
    const { isError, structuredContent } = await call();
    assert.equal(isError, false);
    assert.match(structuredContent.data.qr.payload, /^000201/);
    // The person granted this scope alone.
    await isRefused(agent.saved.access_token, 403, "insufficient_scope");
    await client.close();
  },

  "takes no token for another resource": async () => {
    const token = await clientToken(issuer, { resource: "https://other.example/mcp", scope: SCOPE });
    await isRefused(token, 401, "invalid_token");
  },

  "takes no token without the scope": async () => {
    await isRefused(await clientToken(issuer, { resource, scope: "bank-qr:generate" }), 403, "insufficient_scope");
  },

  "takes no opaque token": async () => {
    await isRefused(await clientToken(issuer, {}), 401, "invalid_token");
  },

  "takes no ID token": async () => {
    const verifier = "interop-verifier-interop-verifier-interop-verifier";
    const digest = await crypto.subtle.digest("SHA-256", Buffer.from(verifier));
    const request = new URLSearchParams({
      client_id: "agent",
      response_type: "code",
      redirect_uri: "http://127.0.0.1/callback",
      scope: "openid",
      code_challenge: Buffer.from(digest).toString("base64url"),
      code_challenge_method: "S256",
    });
    const callback = await browse(`${issuer}/auth?${request}`);
    const body = new URLSearchParams({
      client_id: "agent",
      grant_type: "authorization_code",
      code: callback.searchParams.get("code"),
      redirect_uri: "http://127.0.0.1/callback",
      code_verifier: verifier,
    });
    const { id_token: token } = await (await fetch(`${issuer}/token`, { method: "POST", body })).json();
    assert.equal(token.split(".").length, 3);
    await isRefused(token, 401, "invalid_token");
  },

  "fails no call while the provider rotates its keys": rotate,

  "logs each fetch": async () => {
    const lines = (await stop()).map((line) => JSON.parse(line));
    const fetched = lines.filter((line) => line.message === "a document was fetched");
    assert.ok(fetched.every((line) => line.origin === issuer && line.purpose === "identity-provider"));
    const { metadata, keys } = await provider.asked();
    assert.equal(fetched.length, metadata + keys);
    assert.ok(lines.every((line) => line.level !== "ERROR"));
  },
};

/** Workers call with old and new tokens, and each rotation falls among their calls. */
async function rotate() {
  const before = await provider.asked();
  const first = await clientToken(issuer, { resource, scope: SCOPE });
  const statuses = new Map();
  const kids = new Set();
  let rotations = 0;
  const work = async (worker) => {
    const client = worker % 2 ? "machine" : "machine-es256";
    let seen = -1;
    while (seen < ROTATIONS) {
      seen = rotations;
      const token = await clientToken(issuer, { client, resource, scope: SCOPE });
      kids.add(header(token).kid);
      for (let call = 0; call < 40; call += 1) {
        const { status } = await banks(call % 4 ? token : first);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    }
  };
  const working = Array.from({ length: WORKERS }, (_, worker) => work(worker));
  const all = () => [...statuses.values()].reduce((sum, count) => sum + count, 0);
  while (rotations < ROTATIONS) {
    const reached = all() + 200;
    while (all() < reached) await Promise.race([fetch(`${base}/healthz`), ...working]);
    await provider.rotate();
    rotations += 1;
  }
  await Promise.all(working);
  assert.deepEqual([...statuses.keys()], [200], JSON.stringify([...statuses]));
  assert.equal(kids.size, 2 * (ROTATIONS + 1));
  const after = await provider.asked();
  // Both new keys of a rotation come with one fetch.
  assert.equal(after.keys - before.keys, ROTATIONS);
}

let passed = 0;
let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
    passed += 1;
  } catch (error) {
    failed += 1;
    console.error(`oauth: ${name}\n${error.stack}`);
    process.exitCode = 1;
  }
}
await stop();
provider.stop();
const { version } = JSON.parse(readFileSync("node_modules/oidc-provider/package.json"));
console.log(`oauth with oidc-provider ${version}: ${passed} passed, ${failed} failed`);
