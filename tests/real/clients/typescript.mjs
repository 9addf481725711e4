// Clients on the official SDK for TypeScript, version 1 or 2, which do what the standard input says. Each line is a request
// of one of them: {"id", "client", "method", "params"}. Each line of the output is an answer, {"id", "result"} or
// {"id", "error"}, or a notification: {"client", "notification"}.
import { createInterface } from 'node:readline'

const options = JSON.parse(process.argv[2]) // {"sdk", "clients", "url"} or {"sdk", "clients", "command", "args", "env"}
const version = {
  1: { client: '@modelcontextprotocol/sdk/client/index.js', http: '@modelcontextprotocol/sdk/client/streamableHttp.js', stdio: '@modelcontextprotocol/sdk/client/stdio.js' },
  2: { client: '@modelcontextprotocol/client', http: '@modelcontextprotocol/client', stdio: '@modelcontextprotocol/client/stdio' },
}[options.sdk]
const { Client } = await import(version.client)
const { StreamableHTTPClientTransport } = await import(version.http)
const { StdioClientTransport } = await import(version.stdio)

// any accepts each result as it is.
const any = options.sdk === 1 ? (await import('zod')).z.any() : { '~standard': { version: 1, vendor: 'any', validate: (value) => ({ value }) } }

const say = (line) => process.stdout.write(JSON.stringify(line) + '\n')

const connect = async (number) => {
  const client = new Client({ name: 'typescript', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } })
  client.fallbackNotificationHandler = async (notification) => say({ client: number, notification })
  client.onerror = (error) => process.stderr.write(`client ${number}: ${error}\n`)
  await client.connect(
    options.url ? new StreamableHTTPClientTransport(new URL(options.url))
      : new StdioClientTransport({ command: options.command, args: options.args, env: { ...process.env, ...options.env } })
  )
  return client
}

const clients = await Promise.all(Array.from({ length: options.clients }, (_, number) => connect(number)))
say({ id: 0, result: {} })
for await (const line of createInterface({ input: process.stdin })) {
  const { id, client, method, params } = JSON.parse(line)
  clients[client].request({ method, params }, any, { timeout: 120000 }).then(
    (result) => say({ id, result }),
    (error) => say({ id, error: String(error) })
  )
}
for (const client of clients) {
  await client.transport?.terminateSession?.().catch(() => {})
}
await Promise.all(clients.map((client) => client.close()))
