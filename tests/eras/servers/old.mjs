// A server of 2025-11-25 over stdio: its tools ask their client, and wait for the answer.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { SubscribeRequestSchema, UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { asking, capabilities, identified, note, pause, question, register, sampling, text, uri } from './tools.mjs'

const server = new McpServer({ name: 'old', version: '1' }, { capabilities })
const low = server.server
low.setRequestHandler(SubscribeRequestSchema, async () => ({}))
low.setRequestHandler(UnsubscribeRequestSchema, async () => ({}))

const contextOf = ({ signal, sessionId, _meta, sendNotification }) => ({
  signal,
  progressToken: _meta?.progressToken,
  notify: (method, params) => sendNotification({ method, params }),
  log: (level, data) => low.sendLoggingMessage({ level, data }, sessionId),
})
register(server, contextOf, { updated: () => low.sendResourceUpdated({ uri }) })

const tool = (name, run, inputSchema = identified) => server.registerTool(name, { description: name, inputSchema }, (args, { requestId }) => {
  note('enter', args.id)
  return run(args, { relatedRequestId: requestId, timeout: 60000 })
})

tool('ask', async ({ id, before, after, late }, related) => {
  await pause(before)
  const answer = await low.elicitInput(question('name'), related)
  const accepted = answer.action === 'accept'
  note('answered', id)
  await pause(after)
  note(accepted ? 'done' : 'refused', id)
  await pause(late)
  return text(accepted ? `hello ${answer.content.name} ${id}` : answer.action)
}, asking)

tool('ask2', async ({ id }, related) => {
  const first = await low.elicitInput(question('first'), related)
  const last = await low.elicitInput(question('last'), related)
  note('done', id)
  return text(`${first.content.first} ${last.content.last}`)
})

tool('sample', async (args, related) => text((await low.createMessage(sampling, related)).content.text))
tool('roots', async (args, related) => text((await low.listRoots({}, related)).roots.map((root) => root.uri).join()))

await server.connect(new StdioServerTransport())
