#!/usr/bin/env node
// Runs the program that the package for this platform contains, with the same arguments, streams and exit code.
"use strict";

const { spawn } = require("node:child_process");
const os = require("node:os");
const path = require("node:path");
const { name, version, optionalDependencies } = require("../package.json");

const platform = `${process.platform}-${process.arch}`;
const supported = Object.keys(optionalDependencies).map((dependency) => dependency.split("/retort-")[1]);

function fail(message) {
  process.stderr.write(`retort: ${message}\n`);
  process.exit(1);
}

// findProgram returns the path of the program for this platform. It ends the process if there is none.
function findProgram() {
  if (!supported.includes(platform)) {
    fail(`there is no program for ${platform}; ${name} supports ${supported.join(", ")}`);
  }
  const dependency = Object.keys(optionalDependencies)[supported.indexOf(platform)];
  try {
    const manifest = require.resolve(`${dependency}/package.json`);
    const found = require(manifest);
    if (found.name !== dependency || found.version !== version) {
      return fail(
        `${name} ${version} needs ${dependency} ${version}, but ${path.dirname(manifest)} has ${found.name} ${found.version}; ` +
          `install ${name} again`,
      );
    }
    return path.join(path.dirname(manifest), "bin", process.platform === "win32" ? "retort.exe" : "retort");
  } catch {
    return fail(
      `the package ${dependency} with the program for ${platform} is not installed. ` +
        "npm leaves it out with --no-optional or --omit=optional, and if node_modules was copied from a machine " +
        `with another system. Install ${name} again on this machine, without these options. ` +
        `Supported systems: ${supported.join(", ")}`,
    );
  }
}

// A terminal sends the interrupt to this process and to the program. A second one would make the program
// end immediately, so it is not forwarded then.
const interactive = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
const signals = ["SIGINT", "SIGTERM", "SIGHUP"];

const program = spawn(findProgram(), process.argv.slice(2), { stdio: "inherit" });
for (const signal of signals) {
  process.on(signal, () => {
    if (signal !== "SIGINT" || !interactive) program.kill(signal);
  });
}
program.on("error", (error) => fail(`cannot start ${program.spawnfile}: ${error.message}`));
program.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  for (const each of signals) process.removeAllListeners(each);
  process.exitCode = 128 + os.constants.signals[signal];
  process.kill(process.pid, signal);
});
