// What every TypeScript client must see at every protocol version. A client is given as `connect(options)`, which opens
// a session, and `fault(error)`, which says what its errors carry; nothing else here knows which SDK runs.

import assert from "node:assert/strict";

const { INTEROP_URL: base, INTEROP_KEY: key, INTEROP_NARROW_KEY: narrow } = process.env;
export const endpoint = new URL("/mcp", base);

const TRANSFER = { bank: "VCB", accountNumber: "0011001234567", amount: 150000, memo: "Tiền cà phê" };
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const MODERN = "2026-07-28";

/** Runs all checks at each version and prints one line for each. */
export async function run(label, versions, client) {
  for (const version of versions) {
    const open = (options = {}) => client.connect({ version, key, ...options });
    let passed = 0;
    let failed = 0;
    for (const [name, check] of Object.entries(checks)) {
      if (name === "ping" && version === MODERN) continue;
      try {
        await check({ ...client, version, open });
        passed += 1;
      } catch (error) {
        failed += 1;
        console.error(`${label} at ${version}: ${name}\n${error.stack}`);
        process.exitCode = 1;
      }
    }
    console.log(`${label} at ${version}: ${passed} passed, ${failed} failed`);
  }
}

async function within(open, options, use) {
  const session = await open(options);
  try {
    return await use(session);
  } finally {
    await session.close();
  }
}

/** What the error carries that `promise` must end with. */
async function refused(fault, promise) {
  const [settled] = await Promise.allSettled([promise]);
  assert.equal(settled.status, "rejected", `expected a refusal, got ${JSON.stringify(settled.value)}`);
  return fault(settled.reason);
}

const checks = {
  "negotiates the version": ({ open, version }) =>
    within(open, {}, (session) => {
      assert.equal(session.version(), version);
      assert.equal(session.server().name, "switchbay");
      assert.match(session.instructions(), /developer-guide/);
      assert.deepEqual(session.capabilities(), { tools: {}, resources: {} });
    }),

  "lists the tools": ({ open }) =>
    within(open, { key: undefined }, async (session) => {
      const { tools } = await session.tools();
      const tool = tools.find((tool) => tool.name === "generate_bank_qr");
      assert.equal(tool.title, "Generate a bank-transfer QR");
      assert.equal(tool.outputSchema.type, "object");
      assert.equal(tool.annotations.readOnlyHint, true);
      assert.deepEqual(tool._meta["dev.switchbay/requiredScopes"], ["bank-qr:generate"]);
      assert.ok(tools.some((tool) => tool.name === "list_bank_qr_banks"));
    }),

  "calls generate_bank_qr": ({ open }) =>
    within(open, {}, async (session) => {
      await session.tools();
      const result = await session.call("generate_bank_qr", TRANSFER);
      assert.equal(result.isError, false);
      assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
      assert.equal(result.structuredContent.success, true);
      assert.match(result.structuredContent.data.qr.payload, /^000201010212.*6304[0-9A-F]{4}$/);
      const response = await fetch(new URL("/api/v1/tools/bank-qr", base), {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
        body: JSON.stringify(TRANSFER),
      });
      assert.deepEqual(result.structuredContent, await response.json());
    }),

  "calls list_bank_qr_banks": ({ open }) =>
    within(open, {}, async (session) => {
      await session.tools();
      const { isError, structuredContent } = await session.call("list_bank_qr_banks", {});
      assert.equal(isError, false);
      assert.ok(structuredContent.data.count > 0);
      assert.equal(structuredContent.data.banks.length, structuredContent.data.count);
    }),

  // Proves that the validation which the calls above passed was really on.
  "checks results against the output schema": ({ open }) =>
    within(open, { fetch: spoil }, async (session) => {
      await session.tools();
      const call = session.call("list_bank_qr_banks", {});
      await assert.rejects(call, /does not match the tool's output schema/);
    }),

  "reads a refused argument": ({ open }) =>
    within(open, {}, async (session) => {
      await session.tools();
      const result = await session.call("generate_bank_qr", { ...TRANSFER, bank: "no such bank" });
      assert.equal(result.isError, true);
      assert.equal(result.structuredContent, undefined);
      const { success, error, data } = JSON.parse(result.content[0].text);
      assert.equal(success, false);
      assert.equal(error.code, "VALIDATION_ERROR");
      assert.equal(data.field, "bank");
      assert.match(data.requestId, UUID);
    }),

  "reads an unknown argument": ({ open }) =>
    within(open, {}, async (session) => {
      const result = await session.call("generate_bank_qr", { ...TRANSFER, holder: "me" });
      assert.equal(result.isError, true);
      assert.equal(JSON.parse(result.content[0].text).data.field, "holder");
    }),

  "is refused an unknown tool": ({ open, fault }) =>
    within(open, {}, async (session) => {
      const { code, message } = await refused(fault, session.call("no_such_tool", {}));
      assert.equal(code, -32602);
      assert.match(message, /Unknown tool: no_such_tool/);
    }),

  "is refused without a credential": ({ open, fault }) =>
    within(open, { key: undefined }, async (session) => {
      const { status, message } = await refused(fault, session.call("list_bank_qr_banks", {}));
      assert.equal(status, 401);
      assert.match(message, /UNAUTHORIZED|No credential/);
    }),

  "is refused without the scope": ({ open, fault }) =>
    within(open, { key: narrow }, async (session) => {
      assert.equal((await session.call("list_bank_qr_banks", {})).isError, false);
      const { status, message, scope } = await refused(fault, session.call("generate_bank_qr", TRANSFER));
      assert.equal(status, 403);
      assert.match(message, /FORBIDDEN|scope/);
      if (scope) assert.equal(scope, "bank-qr:generate");
    }),

  "lists the resources": ({ open }) =>
    within(open, { key: undefined }, async (session) => {
      const { resources } = await session.resources();
      assert.deepEqual(
        resources.map((resource) => resource.uri),
        ["service://developer-guide", "service://openapi"],
      );
      assert.deepEqual((await session.templates()).resourceTemplates, []);
    }),

  "reads the developer guide": ({ open }) =>
    within(open, {}, (session) => isServed(session, "developer-guide", "/developer-guide")),

  "reads the OpenAPI document": ({ open }) =>
    within(open, {}, (session) => isServed(session, "openapi", "/openapi.json")),

  "is refused an unknown resource": ({ open, fault, version }) =>
    within(open, {}, async (session) => {
      const { code, missing } = await refused(fault, session.read("service://nothing"));
      if (missing) assert.equal(missing, "service://nothing");
      else assert.equal(code, version === MODERN ? -32602 : -32002);
    }),

  ping: ({ open }) => within(open, {}, async (session) => assert.deepEqual(await session.ping(), {})),
};

/** A resource holds what HTTP serves, and is as long as the list says. */
async function isServed(session, name, path) {
  const { resources } = await session.resources();
  const listed = resources.find((resource) => resource.name === name);
  const { contents } = await session.read(listed.uri);
  assert.equal(contents.length, 1);
  assert.equal(contents[0].uri, listed.uri);
  assert.equal(contents[0].mimeType, listed.mimeType);
  assert.equal(Buffer.byteLength(contents[0].text), listed.size);
  assert.equal(contents[0].text, await (await fetch(new URL(path, base))).text());
}

/** A server that breaks its own promise: `success` is no boolean. */
async function spoil(input, init) {
  const response = await fetch(input, init);
  if (!String(init?.body).includes('"tools/call"')) return response;
  const text = await response.text();
  const spoilt = text.replace('"structuredContent":{"success":true', '"structuredContent":{"success":"yes"');
  const { status, headers } = response;
  return new Response(spoilt, { status, headers: { "content-type": headers.get("content-type") } });
}
