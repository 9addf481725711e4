// A row is one server, and how clients reach it: by mcpactor serve that they start ("stdio"), by one that listens ("listen"),
// or without it ("direct"), which shows that the cases themselves hold.
import fs from 'node:fs'
import path from 'node:path'
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { freePort, limit, listening, must, pause, until, within } from './checks.mjs'
import { connect } from './clients.mjs'

// servers is the folder of the servers, and the working directory of all programs.
export const servers = fileURLToPath(new URL('../servers', import.meta.url))

export class Row {
  // The server is a command line, or, if it is over HTTP, one that takes the port at its end. All that the programs keep
  // is in a folder of the row, which survives a restart of mcpactor serve.
  constructor({ mcpactor, folder, front, server, http = false, config = undefined }) {
    Object.assign(this, { mcpactor, front, server, http, config, clients: [] })
    this.folder = folder
    fs.mkdirSync(folder, { recursive: true })
    this.ledger = path.join(folder, 'ledger')
    fs.writeFileSync(this.ledger, '')
    this.env = { ...process.env, HOME: folder, LEDGER: this.ledger, TASKS: path.join(folder, 'tasks') }
    for (const kind of ['CACHE', 'CONFIG', 'DATA', 'STATE']) this.env[`XDG_${kind}_HOME`] = path.join(folder, kind.toLowerCase())
    this.log = fs.openSync(path.join(folder, 'log'), 'a')
  }

  // start starts what listens.
  async start() {
    if (this.http && !this.serverProcess) {
      const port = await freePort()
      this.serverProcess = this.spawn([...this.server, String(port)])
      await listening(port, 'the server')
      this.serverURL = `http://127.0.0.1:${port}/`
    }
    if (this.front === 'listen') {
      this.port ??= await freePort()
      this.serve = this.spawn([this.mcpactor, 'serve', '--listen', `127.0.0.1:${this.port}`, ...this.served])
      await listening(this.port, 'mcpactor serve')
    }
  }

  spawn([program, ...args]) {
    return spawn(program, args, { cwd: servers, env: this.env, stdio: ['ignore', 'ignore', this.log] })
  }

  // served are the arguments of mcpactor serve for the server of the row.
  get served() {
    if (this.config) return ['--config', this.config]
    return this.http ? [this.serverURL] : ['--', ...this.server]
  }

  // target is what a client connects to: a URL, or a command that it starts.
  get target() {
    if (this.front === 'listen') return new URL(`http://127.0.0.1:${this.port}/mcp`)
    if (this.front === 'direct' && this.http) return new URL(this.serverURL)
    const [command, ...args] = this.front === 'direct' ? this.server : [this.mcpactor, 'serve', ...this.served]
    return { command, args, cwd: servers, env: this.env, stderr: this.log }
  }

  // open connects a client of an era.
  async open(era, how) {
    const client = await connect(era, this.target, how)
    this.clients.push(client)
    return client
  }

  // lines returns the lines of the ledger about an execution.
  lines(what, id) {
    return fs.readFileSync(this.ledger, 'utf8').split('\n').filter((line) => line.startsWith(`${what} ${id} `))
  }

  // killServer kills the process that has written a line of the ledger.
  killServer(what, id) {
    const [line] = this.lines(what, id).slice(-1)
    must(line, `nothing has run: ${what} ${id}`)
    process.kill(Number(line.split(' ')[2]), 'SIGKILL')
  }

  // restartServe kills mcpactor serve, or those that clients have started. One that listens starts again, and any other one
  // with its next client.
  async restartServe(clients = this.clients) {
    if (this.front === 'listen') await end(this.serve, 'SIGKILL')
    else for (const { transport } of clients) if (transport.pid) process.kill(transport.pid, 'SIGKILL')
    await pause(300)
    await this.start()
  }

  // end closes the clients, ends the programs, and returns the processes that are left, which it kills.
  async end() {
    await Promise.all(this.clients.map(({ sdk }) => within(limit, sdk.close(), 'close').catch(() => {})))
    if (this.serve) await end(this.serve, 'SIGTERM')
    if (this.serverProcess) await end(this.serverProcess, 'SIGKILL')
    let left = []
    await until(() => (left = this.processes()).length === 0, limit, 'the end').catch(() => {})
    for (const pid of left) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It has just ended.
      }
    }
    fs.closeSync(this.log)
    return left
  }

  // processes returns the processes of the row: they have its ledger in their environment.
  processes() {
    return fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number).filter((pid) => {
      try {
        return fs.readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes('LEDGER=' + this.ledger)
      } catch {
        return false
      }
    })
  }
}

// end ends a process, with SIGKILL if the signal does not end it.
const end = async (child, signal) => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise((done) => child.once('exit', done))
  child.kill(signal)
  await within(limit, gone, 'the end').catch(() => child.kill('SIGKILL'))
}
