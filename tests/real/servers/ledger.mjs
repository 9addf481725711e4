// A server on the official SDK for TypeScript, over stdio, or over streamable HTTP with sessions at PORT. Its tool
// writes an entry into the file LEDGER, and is not idempotent.
import { appendFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { z } from 'zod'

const newServer = () => {
  const server = new McpServer({ name: 'ledger', version: '1.0.0' })
  server.registerTool(
    'write',
    { inputSchema: { entry: z.string(), before: z.number(), after: z.number() }, annotations: { idempotentHint: false } },
    async ({ entry, before, after }) => {
      await pause(before)
      appendFileSync(process.env.LEDGER, entry + '\n')
      await pause(after)
      return { content: [{ type: 'text', text: entry }] }
    }
  )
  return server
}

if (!process.env.PORT) {
  await newServer().connect(new StdioServerTransport())
} else {
  const sessions = new Map()
  createServer(async (request, response) => {
    const id = request.headers['mcp-session-id']
    let transport = sessions.get(id)
    if (id && !transport) {
      response.writeHead(404).end('session not found')
      return
    }
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, transport),
      })
      await newServer().connect(transport)
    }
    await transport.handleRequest(request, response)
  }).listen(Number(process.env.PORT), '127.0.0.1')
}
