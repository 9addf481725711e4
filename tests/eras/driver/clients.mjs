// Clients on the official SDK for TypeScript: version 1 speaks the old protocol, version 2 is pinned to the new one.
import * as v2 from '@modelcontextprotocol/client'
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as HTTP1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import * as schemas1 from '@modelcontextprotocol/sdk/types.js'
import { limit, within } from './checks.mjs'

const answers = { name: 'Ada', first: 'Ada', last: 'Lovelace' }
const everything = { elicitation: { form: {} }, sampling: {}, roots: {} }

// accept answers a question for one field.
const accept = ({ params }) => {
  const [field] = Object.keys(params.requestedSchema.properties)
  return { action: 'accept', content: { [field]: answers[field] } }
}

// connect connects a client of an era to a URL, or to a command that it starts. It declares capabilities, and answers
// elicitation with the function answer. A manual client of the new era leaves questions to its caller.
export const connect = async (era, to, { capabilities = everything, answer = accept, manual = false } = {}) => {
  const client = era === 'old' ? oldClient(to, capabilities) : newClient(to, capabilities, manual)
  const { sdk, seen } = client
  const requests = {
    elicitation: ['elicitation/create', schemas1.ElicitRequestSchema, answer],
    sampling: ['sampling/createMessage', schemas1.CreateMessageRequestSchema, () => ({ role: 'assistant', model: 'm', content: { type: 'text', text: 'sampled' } })],
    roots: ['roots/list', schemas1.ListRootsRequestSchema, () => ({ roots: [{ uri: 'file:///root' }] })],
  }
  for (const [name, [method, schema, handle]] of Object.entries(requests)) {
    if (capabilities[name]) sdk.setRequestHandler(era === 'old' ? schema : method, handle)
  }
  const notifications = {
    'notifications/tools/list_changed': schemas1.ToolListChangedNotificationSchema,
    'notifications/resources/updated': schemas1.ResourceUpdatedNotificationSchema,
    'notifications/message': schemas1.LoggingMessageNotificationSchema,
  }
  for (const [method, schema] of Object.entries(notifications)) {
    sdk.setNotificationHandler(era === 'old' ? schema : method, (notification) => { seen.push(notification) })
  }
  sdk.onerror = () => {}
  await within(limit, sdk.connect(client.transport), 'connect').catch((error) => {
    sdk.close().catch(() => {})
    throw error
  })
  return client
}

const oldClient = (to, capabilities) => {
  const sdk = new Client1({ name: 'old-client', version: '1' }, { capabilities })
  return {
    sdk,
    seen: [],
    transport: to instanceof URL ? new HTTP1(to) : new Stdio1(to),
    call: (name, args, options) => sdk.callTool({ name, arguments: args }, undefined, { timeout: limit, ...options }),
  }
}

const newClient = (to, capabilities, manual) => {
  const versionNegotiation = { mode: { pin: '2026-07-28' }, probe: { timeoutMs: limit } }
  const sdk = new v2.Client({ name: 'new-client', version: '1' }, {
    capabilities, versionNegotiation, ...(manual && { inputRequired: { autoFulfill: false } }),
  })
  return {
    sdk,
    seen: [],
    transport: to instanceof URL ? new v2.StreamableHTTPClientTransport(to) : new Stdio2(to),
    call: (name, args, options, meta) => sdk.callTool({ name, arguments: args, ...(meta && { _meta: meta }) }, { timeout: limit, ...options }),
    // round sends one round of a call of the tool "ask".
    round: (id, more) => sdk.request(
      { method: 'tools/call', params: { name: 'ask', arguments: { id }, ...more } }, { allowInputRequired: true, timeout: limit },
    ),
  }
}
