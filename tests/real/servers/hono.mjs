// A server on @hono/mcp with one transport, and so one session, for all.
import { randomUUID } from 'node:crypto'
import { serve } from '@hono/node-server'
import { StreamableHTTPTransport } from '@hono/mcp'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { Hono } from 'hono'
import { z } from 'zod'

const server = new McpServer({ name: 'hono', version: '1.0.0' })
server.registerTool('echo', { inputSchema: { message: z.string() } }, async ({ message }) => ({
  content: [{ type: 'text', text: `Echo: ${message}` }],
}))
const transport = new StreamableHTTPTransport({ sessionIdGenerator: () => randomUUID() })
await server.connect(transport)
const app = new Hono()
app.all('/mcp', (c) => transport.handleRequest(c))
serve({ fetch: app.fetch, port: Number(process.env.PORT), hostname: '127.0.0.1' })
