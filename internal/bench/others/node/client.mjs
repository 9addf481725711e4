// The official client for Node, as demo bench measures it: it reads how many calls to
// make, as a line of JSON, makes them on one session, and writes how long they took,
// in nanoseconds.
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = new Client({ name: "bench", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));

async function call() {
  const result = await client.callTool({ name: "echo", arguments: { text: "hello" } });
  if (result.isError || result.content.length !== 1) throw new Error(JSON.stringify(result));
}

async function carryOut({ calls, callers }) {
  const latencies = [];
  let next = 0;
  const began = process.hrtime.bigint();
  const caller = async () => {
    while (next++ < calls) {
      const at = process.hrtime.bigint();
      await call();
      latencies.push(Number(process.hrtime.bigint() - at));
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  const ns = Number(process.hrtime.bigint() - began);
  latencies.sort((a, b) => a - b);
  return { ns, p50: latencies[calls >> 1], p99: latencies[Math.floor(calls * 0.99)] };
}

for await (const line of createInterface({ input: process.stdin })) {
  let taken;
  try {
    taken = await carryOut(JSON.parse(line));
  } catch (e) {
    taken = { error: String(e) };
  }
  console.log(JSON.stringify(taken));
}
await client.close();
