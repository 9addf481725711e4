// The client of the official TypeScript SDK: it reads lines of JSON that say how many
// calls to make, makes them on one session, and writes how long they took, in
// nanoseconds.
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = new Client({ name: "bench", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));

async function call() {
  const result = await client.callTool({ name: "echo", arguments: { text: "hello" } });
  if (result.isError || result.content.length !== 1) throw new Error(JSON.stringify(result));
}

async function makeCalls({ calls, callers }) {
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
  return { ns, p50: latencies[calls >> 1] };
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await makeCalls(JSON.parse(line))));
}
await client.close();
