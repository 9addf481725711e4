// The cases of all rows. A case that returns a text has it printed: these are words that a caller was told.
import { limit, must, pause, same, textOf, toldOf, until, within } from './checks.mjs'

const logLevel = 'io.modelcontextprotocol/logLevel'

// once fails the case unless a call began once and was done once.
const once = (row, id) => {
  must(row.lines('enter', id).length === 1 && row.lines('done', id).length === 1, 'not run once')
}

export const cases = {
  // The first start of a server may take longer than mcpactor serve waits with a list.
  async list({ client }) {
    const { tools } = await until(() => client.sdk.listTools().catch((error) => {
      must(/has not answered yet/.test(error.message), error.message)
    }), limit, 'the list')
    const names = tools.map((tool) => tool.name)
    must(names.includes('ask') && names.includes('echo'), names.join())
  },

  async call({ row, client }) {
    same(textOf(await client.call('echo', { id: 'c1', text: 'hi' })), 'hi')
    must(row.lines('echo', 'c1').length === 1, 'not run once')
  },

  async progress({ client }) {
    const got = []
    await client.call('slow', { id: 'p1', ms: 200 }, { onprogress: ({ progress }) => got.push(progress) })
    same(got.join(), '1,2,3,4')
  },

  async cancel({ row, client }) {
    const stop = new AbortController()
    const call = client.call('slow', { id: 'x1', ms: 60000 }, { signal: stop.signal }).then(() => 'a result', (error) => error)
    await until(() => row.lines('slow', 'x1').length, limit, 'the call')
    stop.abort('enough')
    must(await call !== 'a result', 'it was answered')
    await until(() => row.lines('cancelled', 'x1').length, limit, 'the cancellation at the server')
    same(textOf(await client.call('echo', { id: 'x2', text: 'on' })), 'on')
  },

  async 'elicit-accept'({ row, client }) {
    same(textOf(await client.call('ask', { id: 'e1' })), 'hello Ada e1')
    once(row, 'e1')
  },

  async 'elicit-decline'({ row, clientEra }) {
    const client = await row.open(clientEra, { answer: () => ({ action: 'decline' }) })
    same(textOf(await client.call('ask', { id: 'e2' })), 'decline')
    must(row.lines('refused', 'e2').length === 1 && !row.lines('done', 'e2').length, 'not refused once')
  },

  async 'elicit-two-rounds'({ row, client }) {
    same(textOf(await client.call('ask2', { id: 'e3' })), 'Ada Lovelace')
    once(row, 'e3')
  },

  async 'elicit-cannot'({ row, clientEra }) {
    const client = await row.open(clientEra, { capabilities: {} })
    const words = await toldOf(within(limit, client.call('ask', { id: 'e4' }), 'the call'))
    must(!/cannot be reached|unsupported protocol/i.test(words), words)
    return words
  },

  async sampling({ client }) {
    same(textOf(await client.call('sample', { id: 's1' })), 'sampled')
  },

  async roots({ client }) {
    same(textOf(await client.call('roots', { id: 's2' })), 'file:///root')
  },

  async 'list-changed'({ client, clientEra }) {
    const listen = clientEra === 'new' && await within(limit, client.sdk.listen({ toolsListChanged: true }), 'listen')
    if (listen) must(listen.honoredFilter.toolsListChanged, 'not honoured')
    client.seen.length = 0
    await client.call('flip', { id: 'l1' })
    await until(() => client.seen.some(({ method }) => method === 'notifications/tools/list_changed'), limit, 'the notification')
    await until(async () => (await client.sdk.listTools()).tools.some(({ name }) => name === 'extra'), limit, 'the tool')
    if (listen) await listen.close()
  },

  async 'resource-updated'({ row, client, clientEra, serverEra }) {
    if (row.front === 'direct' && clientEra !== serverEra) return 'skip: the SDK has no subscriptions for old clients'
    const uri = 'test://r'
    const listen = clientEra === 'new' && await within(limit, client.sdk.listen({ resourceSubscriptions: [uri] }), 'listen')
    if (listen) must(listen.honoredFilter.resourceSubscriptions?.includes(uri), 'not honoured')
    else await client.sdk.subscribeResource({ uri })
    client.seen.length = 0
    await client.call('touch', { id: 'u1' })
    const isUpdate = ({ method, params }) => method === 'notifications/resources/updated' && params.uri === uri
    await until(() => client.seen.some(isUpdate), limit, 'the notification')
    if (listen) await listen.close()
  },

  // A new client gets log lines of the requests that ask for them, and of no other one.
  async 'log-line'({ client, clientEra }) {
    const saw = (line) => client.seen.some(({ params }) => params?.data === line)
    client.seen.length = 0
    if (clientEra === 'old') await client.sdk.setLoggingLevel('info')
    await client.call('log', { id: 'g1' }, {}, { [logLevel]: 'info' })
    await until(() => saw('line-g1'), limit, 'the line')
    if (clientEra === 'old') return
    await client.call('log', { id: 'g2' })
    await pause(200)
    must(!saw('line-g2'), 'a line that nobody has asked for')
  },
}
