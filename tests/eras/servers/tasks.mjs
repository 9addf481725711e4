// A server with tasks over stdio, without an SDK: node tasks.mjs old|new NAME. All such servers use the same ids, t1, t2 and
// so on. The tasks are in the file TASKS-NAME, and so outlive the process. An old one has the tasks of 2025-11-25, a new one
// the extension io.modelcontextprotocol/tasks of 2026-07-28.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import readline from 'node:readline'

const [era, name] = process.argv.slice(2)
const isNew = era === 'new'
const prefix = 'io.modelcontextprotocol/'
const file = `${process.env.TASKS}-${name}`
const tasks = existsSync(file) ? JSON.parse(readFileSync(file)) : {}
const now = new Date().toISOString()

class Failure extends Error {
  constructor(code, message, data) {
    super(message)
    Object.assign(this, { code, data })
  }
}

// complete returns a result with what each one of the era has.
const complete = (result) => isNew ? { resultType: 'complete', _meta: { [prefix + 'serverInfo']: { name, version: '1' } }, ...result } : result
const cached = isNew ? { ttlMs: 0, cacheScope: 'private' } : {}
const described = ({ taskId, status }) => ({
  taskId, status, createdAt: now, lastUpdatedAt: now, ...(isNew ? { ttlMs: 600000, pollIntervalMs: 50 } : { ttl: 600000, pollInterval: 50 }),
})
const outcome = (task) => ({ content: [{ type: 'text', text: `${name} ${task.id}` }] })
const inputRequests = { q: { method: 'elicitation/create', params: { mode: 'form', message: '?', requestedSchema: { type: 'object', properties: {} } } } }

const find = ({ taskId }) => {
  if (!tasks[taskId]) throw new Failure(-32602, 'unknown task')
  return tasks[taskId]
}

const needTasks = ({ _meta }) => {
  const extensions = { [prefix + 'tasks']: {} }
  if (_meta?.[prefix + 'clientCapabilities']?.extensions?.[prefix + 'tasks']) return
  throw new Failure(-32021, 'missing required client capability', { requiredCapabilities: { extensions } })
}

const make = ({ arguments: args = {} }) => {
  const taskId = 't' + (Object.keys(tasks).length + 1)
  appendFileSync(process.env.LEDGER, `work ${args.id} ${process.pid}\n`)
  tasks[taskId] = { taskId, id: args.id, status: args.asks ? 'input_required' : args.hangs ? 'working' : 'completed' }
  return tasks[taskId]
}

const methods = {
  'tools/list': () => complete({ tools: [{ name: 'work', inputSchema: { type: 'object' }, ...(!isNew && { execution: { taskSupport: 'required' } }) }], ...cached }),
}
if (isNew) {
  Object.assign(methods, {
    'server/discover': () => complete({ supportedVersions: ['2026-07-28'], capabilities: { tools: {}, extensions: { [prefix + 'tasks']: {} } }, ...cached }),
    'tools/call': (params) => {
      needTasks(params)
      return { ...complete(described(make(params))), resultType: 'task' }
    },
    'tasks/get': (params) => {
      needTasks(params)
      const task = find(params)
      return complete({
        ...described(task), ...(task.status === 'completed' && { result: outcome(task) }), ...(task.status === 'input_required' && { inputRequests }),
      })
    },
    'tasks/update': (params) => {
      needTasks(params)
      Object.assign(find(params), { status: 'completed', id: params.inputResponses.q.content.name })
      return complete({})
    },
    'tasks/cancel': (params) => {
      needTasks(params)
      find(params).status = 'cancelled'
      return complete({})
    },
  })
} else {
  const can = { tools: {}, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } }
  Object.assign(methods, {
    initialize: () => ({ protocolVersion: '2025-11-25', serverInfo: { name, version: '1' }, capabilities: can }),
    ping: () => ({}),
    'tools/call': (params) => {
      if (!params.task) throw new Failure(-32601, 'the tool needs a task')
      return { task: described(make(params)) }
    },
    'tasks/get': (params) => described(find(params)),
    'tasks/result': (params) => ({ ...outcome(find(params)), _meta: { [prefix + 'related-task']: { taskId: params.taskId } } }),
    'tasks/cancel': (params) => described(Object.assign(find(params), { status: 'cancelled' })),
    // A page has one task.
    'tasks/list': ({ cursor = 0 }) => {
      const all = Object.values(tasks)
      const next = Number(cursor) + 1
      return { tasks: all.slice(next - 1, next).map(described), ...(next < all.length && { nextCursor: String(next) }) }
    },
  })
}

const answer = ({ method, params = {} }) => {
  if (!methods[method]) throw new Failure(-32601, 'Method not found')
  return methods[method](params)
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined || method === undefined) continue
  let response
  try {
    response = { result: answer({ method, params }) }
  } catch ({ code = -32603, message, data }) {
    response = { error: { code, message, ...(data && { data }) } }
  }
  writeFileSync(file, JSON.stringify(tasks))
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...response }) + '\n')
}
