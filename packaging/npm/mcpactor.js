#!/usr/bin/env node
// Runs the program mcpactor, which npm has installed with the package for this platform.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const windows = process.platform === "win32";
const args = process.argv.slice(2);

// find returns the path of the program. Without it, it ends this process with the status of an invalid use: nothing has run.
function find() {
  const name = `@mcpactor/${process.platform}-${process.arch}`;
  try {
    return require.resolve(`${name}/${windows ? "mcpactor.exe" : "mcpactor"}`);
  } catch {
    const known = Object.keys(require("./package.json").optionalDependencies);
    console.error(
      known.includes(name)
        ? `mcpactor: the package ${name} is missing: install mcpactor again on this machine, without --omit=optional or --no-optional`
        : `mcpactor: there is no program for ${process.platform} on ${process.arch}, only ${known.join(", ")}: build it with Go, as https://github.com/mcpactor/mcpactor says`,
    );
    process.exit(2);
  }
}

// run starts the program as a child, and ends as it does. When this process is killed, the child gets the end of its input from the client.
function run(program) {
  const child = spawn(program, args, { stdio: "inherit" });
  // On Windows, the console itself tells all its processes, and to send a signal is to kill.
  for (const signal of ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"]) {
    process.on(signal, () => windows || child.kill(signal));
  }
  child.on("error", (err) => {
    console.error(`mcpactor: ${program} does not start: ${err.message}: install mcpactor again`);
    process.exit(2);
  });
  child.on("exit", (status, signal) => {
    if (signal) {
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    }
    process.exit(signal ? 128 + constants.signals[signal] : status);
  });
}

const program = find();
// Where Node can, it becomes the program: then there is no other process, and signals reach the program itself.
if (process.execve && !windows) {
  process.emitWarning = () => {}; // that execve is experimental
  process.execve(program, [program, ...args]);
} else {
  run(program);
}
