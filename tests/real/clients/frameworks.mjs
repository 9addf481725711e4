// Clients of frameworks for agents, which do what the standard input says, in the form of typescript.mjs: their requests are
// tools/list, which they send once, and tools/call. The content of a result is what the framework returns to its agent.
import { createInterface } from 'node:readline'

const options = JSON.parse(process.argv[2]) // {"framework", "url"} or {"framework", "command", "args", "env"}
const server = { command: options.command, args: options.args, env: { ...process.env, ...options.env } }

const connect = {
  'ai-sdk': async () => {
    const { createMCPClient } = await import('@ai-sdk/mcp')
    const { Experimental_StdioMCPTransport } = await import('@ai-sdk/mcp/mcp-stdio')
    const client = await createMCPClient({
      transport: options.url ? { type: 'http', url: options.url } : new Experimental_StdioMCPTransport(server),
      onUncaughtError: (error) => process.stderr.write(`${error}\n`),
    })
    const tools = await client.tools()
    return {
      names: Object.keys(tools),
      call: (name, args) => tools[name].execute(args, { toolCallId: 'one', messages: [] }),
      close: () => client.close(),
    }
  },
  langchain: async () => {
    const { MultiServerMCPClient } = await import('@langchain/mcp-adapters')
    const client = new MultiServerMCPClient({
      throwOnLoadError: true, prefixToolNameWithServerName: false,
      mcpServers: { s: options.url ? { transport: 'http', url: options.url } : { transport: 'stdio', ...server } },
    })
    const tools = await client.getTools()
    return {
      names: tools.map((tool) => tool.name),
      call: async (name, args) => ({ content: await tools.find((tool) => tool.name === name).invoke(args) }),
      close: () => client.close(),
    }
  },
}

const say = (line) => process.stdout.write(JSON.stringify(line) + '\n')
const client = await connect[options.framework]()
say({ id: 0, result: {} })
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  try {
    say({ id, result: method === 'tools/list' ? { tools: client.names.map((name) => ({ name })) } : await client.call(params.name, params.arguments) })
  } catch (error) {
    say({ id, error: String(error) })
  }
}
await client.close()
