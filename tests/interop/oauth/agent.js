// The people and programs that get tokens: a person's browser at the provider's pages, an MCP client that sends its
// user there, and programs that ask the token endpoint themselves.

import assert from "node:assert/strict";

const REDIRECT = "http://127.0.0.1/callback";

/** Follows an authorization request through login and consent, as a browser would, to the address it ends at. */
export async function browse(url) {
  const jar = new Map();
  let request = { url: new URL(url), method: "GET" };
  for (let step = 0; step < 20; step += 1) {
    const response = await fetch(request.url, {
      method: request.method,
      body: request.body,
      redirect: "manual",
      headers: { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join("; ") },
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name, value] = cookie.match(/^([^=]+)=([^;]*)/);
      jar.set(name, value);
    }
    const location = response.headers.get("location");
    if (location?.startsWith(REDIRECT)) return new URL(location);
    if (location) {
      request = { url: new URL(location, request.url), method: "GET" };
      continue;
    }
    const page = await response.text();
    assert.equal(response.status, 200, page);
    const action = page.match(/<form[^>]* action="([^"]+)"/)[1];
    const prompt = page.match(/name="prompt" value="([^"]+)"/)[1];
    const body = new URLSearchParams({ prompt, login: "subject-1", password: "any" });
    request = { url: new URL(action, request.url), method: "POST", body };
  }
  assert.fail(`the authorization does not end: ${request.url}`);
}

/** What an MCP client needs to know of itself to send its user to log in. */
export class Agent {
  get redirectUrl() {
    return REDIRECT;
  }
  get clientMetadata() {
    return { client_name: "interop", redirect_uris: [REDIRECT], token_endpoint_auth_method: "none" };
  }
  clientInformation() {
    return { client_id: "agent", issuer: this.issuer };
  }
  tokens() {
    return this.saved;
  }
  saveTokens(tokens) {
    this.saved = tokens;
  }
  saveCodeVerifier(verifier) {
    this.verifier = verifier;
  }
  codeVerifier() {
    return this.verifier;
  }
  saveDiscoveryState(state) {
    this.discovered = state;
  }
  discoveryState() {
    return this.discovered;
  }
  async redirectToAuthorization(url) {
    this.authorization = url;
    this.callback = await browse(url);
  }
}

/** Asks the token endpoint for a token of a client's own; without a resource the provider gives an opaque one. */
export async function clientToken(issuer, { client = "machine", resource, scope }) {
  const parameters = { grant_type: "client_credentials", resource, scope };
  const body = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value));
  const authorization = `Basic ${Buffer.from(`${client}:machine-secret`).toString("base64")}`;
  const response = await fetch(`${issuer}/token`, { method: "POST", body, headers: { authorization } });
  const answer = await response.json();
  assert.equal(response.status, 200, JSON.stringify(answer));
  return answer.access_token;
}
