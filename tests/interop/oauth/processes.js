// The two processes of the OAuth checks: the identity provider, and a Switchbay that is configured for it.

import assert from "node:assert/strict";
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const { SWITCHBAY: binary, SWITCHBAY_MANIFEST: manifest } = process.env;

/** The identity provider: its issuer, and `rotate` and `asked`, which say what was asked of it. */
export async function startProvider() {
  const child = fork(new URL("provider.js", import.meta.url), { stdio: ["ignore", "ignore", "pipe", "ipc"] });
  process.once("exit", () => child.kill());
  let said = "";
  child.stderr.on("data", (text) => (said += text));
  const answer = async (message) => {
    if (message) child.send(message);
    const ended = once(child, "exit").then(() => assert.fail(`the identity provider ended: ${said}`));
    const [told] = await Promise.race([once(child, "message"), ended]);
    return told;
  };
  const { issuer } = await answer();
  return {
    issuer,
    rotate: () => answer("rotate"),
    asked: async () => (await answer("asked")).asked,
    stop: () => child.disconnect(),
  };
}

/** A Switchbay that takes this issuer's tokens: its base URL and the lines of its log. */
export async function startSwitchbay(issuer) {
  const folder = mkdtempSync(join(tmpdir(), "oauth-"));
  const config = join(folder, "config.toml");
  writeFileSync(config, `[oauth]\nissuer = "${issuer}"\nper_minute = 1000000\n`);
  const child = spawn(
    binary,
    [
      ...["serve", "--manifest", manifest, "--data", folder, "--config", config, "--log-format", "json"],
      ...["--listen", "127.0.0.1:0", "--operator-listen", "127.0.0.1:0"],
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  process.once("exit", () => child.kill());
  const lines = [];
  const ended = once(child, "exit");
  const base = await new Promise((resolve, reject) => {
    createInterface(child.stderr).on("line", (text) => {
      lines.push(text);
      if (text.includes('"message":"serving"')) resolve(JSON.parse(text).base_url);
    });
    ended.then(() => reject(new Error(`the server ended: ${lines.join("\n")}`)));
  });
  const stop = async () => {
    child.kill();
    await ended;
    rmSync(folder, { recursive: true, force: true });
    return lines;
  };
  return { base, stop };
}
