// An identity provider, a process of its own: `oidc-provider` with its development pages as the login. It tells its
// parent the issuer once it listens, and rotates its keys when told to. A new provider on the same stored sessions is
// how that library takes new keys.

import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import Provider from "oidc-provider";

const SCOPES = "bank-qr:banks bank-qr:generate";
const clients = [
  { client_id: "machine", client_secret: "machine-secret", grant_types: ["client_credentials"] },
  { client_id: "machine-es256", client_secret: "machine-secret", grant_types: ["client_credentials"] },
].map((client) => ({ ...client, redirect_uris: [], response_types: [] }));
clients.push({
  client_id: "agent",
  token_endpoint_auth_method: "none",
  application_type: "native",
  redirect_uris: ["http://127.0.0.1/callback"],
});

const asked = { metadata: 0, keys: 0 };
let keys = pair();
let handle;

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, "http://localhost");
  if (request.headers["user-agent"]?.startsWith("switchbay/")) {
    asked[pathname === "/jwks" ? "keys" : "metadata"] += 1;
  }
  handle(request, response);
});
server.listen(0, "127.0.0.1", () => {
  serve();
  process.send({ issuer: issuer() });
});

process.on("disconnect", () => process.exit());
process.on("message", (message) => {
  if (message === "rotate") {
    // The old keys stay published, because tokens of theirs are still out.
    keys = [...pair(), ...keys];
    serve();
  }
  process.send({ asked });
});

const issuer = () => `http://127.0.0.1:${server.address().port}`;

function serve() {
  const provider = new Provider(issuer(), {
    clients,
    jwks: { keys },
    cookies: { keys: ["interop"] },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_, audience, client) => ({
          scope: SCOPES,
          audience,
          accessTokenFormat: "jwt",
          accessTokenTTL: 300,
          jwt: { sign: { alg: client.clientId.endsWith("es256") ? "ES256" : "RS256" } },
        }),
      },
    },
  });
  handle = provider.callback();
}

function pair() {
  const key = (type, options, alg) => ({
    ...generateKeyPairSync(type, options).privateKey.export({ format: "jwk" }),
    kid: randomUUID(),
    alg,
    use: "sig",
  });
  return [key("rsa", { modulusLength: 2048 }, "RS256"), key("ec", { namedCurve: "P-256" }, "ES256")];
}
