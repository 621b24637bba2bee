// Runs the official conformance suite at each protocol version and holds its verdicts against scenarios.yaml. The suite
// itself takes the expected failures and fails on a stale one; which scenarios must say something is checked here.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { parse } from "yaml";

const SUITE = "node_modules/@modelcontextprotocol/conformance";
const SCENARIOS = "conformance/scenarios.yaml";
// 2025-03-26 has no scenario that applies to a server without sessions.
const VERSIONS = ["2025-06-18", "2025-11-25", "2026-07-28"];

const { version: release } = JSON.parse(readFileSync(`${SUITE}/package.json`));
const { applies, inapplicable, server: failures } = parse(readFileSync(SCENARIOS, "utf8"));

for (const version of VERSIONS) {
  const output = mkdtempSync(join(tmpdir(), "conformance-"));
  try {
    judge(version, output);
  } finally {
    rmSync(output, { recursive: true });
  }
}

function judge(version, output) {
  const suite = spawnSync(
    process.execPath,
    [
      ...["--import", "./conformance/credential.js", `${SUITE}/dist/index.js`, "server", "--suite", "all"],
      ...["--url", `${process.env.INTEROP_URL}/mcp`, "--spec-version", version],
      ...["--expected-failures", SCENARIOS, "--output-dir", output],
    ],
    { encoding: "utf8" },
  );
  const ran = read(output);
  const problems = applies[version].flatMap((scenario) => {
    const checks = ran.get(scenario);
    if (!checks) return [`${scenario} did not run`];
    return checks.some((check) => check.status === "SUCCESS") ? [] : [`${scenario} said nothing`];
  });
  const named = new Set([...applies[version], ...inapplicable, ...failures.map((failure) => failure.split(":")[0])]);
  const unnamed = [...ran.keys()].filter((scenario) => !named.has(scenario));
  problems.push(...unnamed.map((scenario) => `${scenario} is not named in ${SCENARIOS}`));
  if (suite.status !== 0) problems.push(verdict(suite));
  const passed = applies[version]
    .flatMap((scenario) => ran.get(scenario) ?? [])
    .filter((check) => check.status === "SUCCESS").length;
  const label = `conformance ${release} at ${version}`;
  for (const problem of problems) console.error(`${label}: ${problem}`);
  if (problems.length > 0) process.exitCode = 1;
  console.log(`${label}: ${passed} passed, ${problems.length} failed`);
}

/** The checks of every scenario that ran. A folder is named server-<scenario>-<time>. */
function read(output) {
  const ran = new Map();
  for (const folder of readdirSync(output)) {
    const scenario = folder.replace(/^server-/, "").replace(/-\d{4}-\d{2}-\d{2}T[\d-]+Z$/, "");
    ran.set(scenario, JSON.parse(readFileSync(join(output, folder, "checks.json"))));
  }
  return ran;
}

/** What the suite says after its summary, or all that it said where it did not come so far. */
function verdict({ status, stdout, stderr }) {
  const [, summary] = stdout.split("=== SUMMARY ===");
  const said = summary?.match(/(Stale baseline|Unexpected failures)[^]*/)?.[0] ?? stdout + stderr;
  return `the suite ended with ${status}\n${stripVTControlCharacters(said)}`;
}
