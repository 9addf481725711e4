// A server of 2026-07-28: its tools return a question, and run again with the answer. node new.mjs listens on stdio, and
// node new.mjs PORT over HTTP. With --legacy it speaks to old clients over stdio as well, as the SDK does by default.
import { createServer } from 'node:http'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { McpServer, acceptedContent, createMcpHandler, createRequestStateCodec, inputRequired, inputResponse } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { asking, capabilities, identified, note, pause, question, register, sampling, text, uri } from './tools.mjs'

const [how] = process.argv.slice(2)
const codec = createRequestStateCodec({ key: 'k'.repeat(32), ttlSeconds: 600 }) // all processes of the server have this key
let handler // over HTTP

const contextOf = ({ mcpReq }) => ({
  signal: mcpReq.signal,
  progressToken: mcpReq._meta?.progressToken,
  notify: (method, params) => mcpReq.notify({ method, params }),
  log: (level, data) => mcpReq.log(level, data),
})

const elicit = (field) => inputRequired.elicit(question(field))

const make = () => {
  const server = new McpServer({ name: 'new', version: '1' }, { capabilities, requestState: { verify: codec.verify } })
  register(server, contextOf, {
    updated: () => handler ? handler.notify.resourceUpdated(uri) : server.server.sendResourceUpdated({ uri }),
    listChanged: () => handler?.notify.toolsChanged(),
  })

  const tool = (name, run, inputSchema = identified) => server.registerTool(name, { description: name, inputSchema }, (args, { mcpReq }) => run(args, mcpReq))

  tool('ask', async ({ id, before, after, late }, { inputResponses, requestState }) => {
    const answer = inputResponse(inputResponses, 'name')
    if (answer.kind === 'missing') {
      note('enter', id)
      await pause(before)
      return inputRequired({ inputRequests: { name: elicit('name') }, requestState: await codec.mint({ id }) })
    }
    if (requestState()?.id !== id) return text('no state', true)
    const accepted = answer.action === 'accept'
    note('answered', id)
    await pause(after)
    note(accepted ? 'done' : 'refused', id)
    await pause(late)
    return text(accepted ? `hello ${answer.content.name} ${id}` : answer.action)
  }, asking)

  tool('ask2', async ({ id }, { inputResponses, requestState }) => {
    const first = acceptedContent(inputResponses, 'first')?.first
    const last = acceptedContent(inputResponses, 'last')?.last
    if (last) {
      note('done', id)
      return text(`${requestState()?.first} ${last}`)
    }
    if (first) return inputRequired({ inputRequests: { last: elicit('last') }, requestState: await codec.mint({ first }) })
    note('enter', id)
    return inputRequired({ inputRequests: { first: elicit('first') } })
  })

  tool('sample', async (args, { inputResponses }) => {
    if (inputResponse(inputResponses, 's').kind !== 'missing') return text(inputResponses.s.content?.text)
    return inputRequired({ inputRequests: { s: inputRequired.createMessage(sampling) } })
  })

  tool('roots', async (args, { inputResponses }) => {
    if (inputResponse(inputResponses, 'r').kind !== 'missing') return text(inputResponses.r.roots.map((root) => root.uri).join())
    return inputRequired({ inputRequests: { r: inputRequired.listRoots() } })
  })

  return server
}

if (how === undefined || how === '--legacy') {
  serveStdio(make, { legacy: how === '--legacy' ? 'serve' : 'reject' })
} else {
  handler = createMcpHandler(make, { legacy: 'reject' })
  createServer(toNodeHandler(handler)).listen(Number(how), '127.0.0.1')
}
