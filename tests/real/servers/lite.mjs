// A server on mcp-lite, which serves sessions that it does not know as well.
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { InMemorySessionAdapter, McpServer, StreamableHttpTransport } from 'mcp-lite'

const server = new McpServer({ name: 'lite', version: '1.0.0' })
server.tool('echo', {
  inputSchema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
  handler: ({ message }) => ({ content: [{ type: 'text', text: `Echo: ${message}` }] }),
})
const handle = new StreamableHttpTransport({
  sessionAdapter: new InMemorySessionAdapter({ maxEventBufferSize: 100 }),
}).bind(server)
const app = new Hono()
app.all('/mcp', (c) => handle(c.req.raw))
serve({ fetch: app.fetch, port: Number(process.env.PORT), hostname: '127.0.0.1' })
