// A client without an SDK, which knows tasks: those of 2025-11-25, or the extension of 2026-07-28.
import { spawn } from 'node:child_process'
import readline from 'node:readline'
import { limit, within } from './checks.mjs'

const prefix = 'io.modelcontextprotocol/'
const everything = { elicitation: { form: {} }, extensions: { [prefix + 'tasks']: {} } }
const metaWith = (capabilities) => ({
  [prefix + 'protocolVersion']: '2026-07-28',
  [prefix + 'clientInfo']: { name: 'plain', version: '1' },
  [prefix + 'clientCapabilities']: capabilities,
})
const introduction = {
  protocolVersion: '2025-11-25', capabilities: { elicitation: {}, tasks: {} }, clientInfo: { name: 'plain', version: '1' },
}

export class PlainClient {
  constructor(era, target) {
    Object.assign(this, { isNew: era === 'new', target, last: 0, waiting: new Map() })
  }

  async open() {
    if (!(this.target instanceof URL)) this.start()
    this.introduction = this.isNew ? await this.request('server/discover', {}) : await this.request('initialize', introduction)
    if (!this.isNew) await this.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
  }

  start() {
    const { command, args, env, cwd, stderr } = this.target
    this.child = spawn(command, args, { env, cwd, stdio: ['pipe', 'pipe', stderr] })
    this.child.stdin.on('error', () => {}) // the process may have ended
    readline.createInterface({ input: this.child.stdout }).on('line', (line) => {
      const message = JSON.parse(line)
      if (!message.method) this.waiting.get(message.id)?.(message)
    })
  }

  // request returns the result of a request. Over HTTP, the name is the header Mcp-Name. A new client declares the capabilities.
  async request(method, params, name, capabilities = everything) {
    const id = ++this.last
    const message = { jsonrpc: '2.0', id, method, params: this.isNew ? { ...params, _meta: metaWith(capabilities) } : params }
    const { error, result } = await within(limit, this.send(message, name), method)
    if (error) throw Object.assign(new Error(error.message), { code: error.code })
    return result
  }

  // send sends a message, and returns the response to a request.
  async send(message, name) {
    if (!this.child) return this.post(message, name)
    const response = new Promise((done) => this.waiting.set(message.id, done))
    this.child.stdin.write(JSON.stringify(message) + '\n')
    return message.id === undefined ? undefined : response
  }

  async post(message, name) {
    const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
    if (this.isNew) Object.assign(headers, { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': message.method, ...(name && { 'Mcp-Name': name }) })
    else if (this.session) Object.assign(headers, { 'MCP-Protocol-Version': '2025-11-25', 'Mcp-Session-Id': this.session })
    const response = await fetch(this.target, { method: 'POST', headers, body: JSON.stringify(message), signal: AbortSignal.timeout(limit) })
    this.session = response.headers.get('mcp-session-id') ?? this.session
    const body = await response.text()
    if (message.id === undefined) return undefined
    if (!response.headers.get('content-type')?.includes('event-stream')) return JSON.parse(body)
    const data = body.split('\n').filter((line) => line.startsWith('data:')).map((line) => line.slice(5)).filter((line) => line.trim())
    const found = data.map((line) => JSON.parse(line)).find(({ id, method }) => id === message.id && !method)
    if (!found) throw new Error('no response in the stream')
    return found
  }

  // kill ends the client, and the process that it has started.
  kill() {
    this.child?.kill('SIGKILL')
    this.child = this.session = undefined
  }
}
