// A server on mcp-framework, over streamable HTTP with sessions.
import { MCPServer, MCPTool } from 'mcp-framework'
import { z } from 'zod'

class Echo extends MCPTool {
  name = 'echo'
  description = 'echoes'
  schema = { message: { type: z.string(), description: 'what to echo' } }
  async execute({ message }) {
    return `Echo: ${message}`
  }
}

const server = new MCPServer({
  name: 'framework',
  version: '1.0.0',
  transport: {
    type: 'http-stream',
    options: { port: Number(process.env.PORT), endpoint: '/mcp', session: { enabled: true, allowClientTermination: true } },
  },
})
server.addTool(Echo)
await server.start()
