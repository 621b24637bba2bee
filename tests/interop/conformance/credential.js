// Preloaded into the conformance suite, which can send no credential of its own: every request that it makes to the
// server under test carries the key. What the server does without one is for the SDK clients to check.

import http from "node:http";
import { syncBuiltinESMExports } from "node:module";

const { INTEROP_URL: base, INTEROP_KEY: key } = process.env;
const NAME = "x-service-api-key";

const { fetch } = globalThis;
globalThis.fetch = (input, init) => {
  const request = new Request(input, init);
  if (request.url.startsWith(base)) request.headers.set(NAME, key);
  return fetch(request);
};

const { request } = http;
http.request = (options, ...rest) => request({ ...options, headers: { ...options.headers, [NAME]: key } }, ...rest);
syncBuiltinESMExports();
