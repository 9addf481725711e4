// Drives mcpactor serve from outside: old (2025-11-25) and new (2026-07-28) clients in front of old and new servers.
//
//   node drive.mjs MCPACTOR GOPEER [ROW...]   runs the rows, or all: a line for each case, with PASS, FAIL or SKIP
//   node drive.mjs --rows                     prints the names of the rows
import { execFile } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { cases } from './cases.mjs'
import { limit, same, textOf, within } from './checks.mjs'
import { kills } from './kills.mjs'
import { PlainClient } from './plain.mjs'
import { rounds } from './rounds.mjs'
import { Row, servers } from './row.mjs'
import { tasksOf, toolsOf } from './tasks.mjs'

const [mcpactor, gopeer, ...chosen] = process.argv.slice(2)
const eras = ['old', 'new']
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'eras-'))
const server = (era, ...args) => [process.execPath, `${era}.mjs`, ...args]
let failed = false

const say = (verdict, row, name, words = '') => {
  failed ||= verdict === 'FAIL'
  console.log(`${verdict} ${row} ${name}${words ? ': ' + String(words).replace(/\s+/g, ' ').slice(0, 300) : ''}`)
}

// run runs cases, one after another. Where there is a failure already, all have failed.
const run = async (row, all, context, failure) => {
  for (const [name, test] of Object.entries(all)) {
    if (failure) {
      say('FAIL', row, name, 'connect: ' + failure.message)
      continue
    }
    try {
      const words = await within(3 * limit, test(context), 'the case')
      if (words?.startsWith('skip: ')) say('SKIP', row, name, words.slice('skip: '.length))
      else say('PASS', row, name, words)
    } catch (error) {
      say('FAIL', row, name, error?.message || error)
    }
  }
}

// attempt returns the error of an action, if it fails.
const attempt = (action) => action().then(() => undefined, (error) => error)

// end ends a row, and fails if a process is left. What the programs said is shown if a case failed.
const end = async (name, row) => {
  const left = await row.end()
  say(left.length ? 'FAIL' : 'PASS', name, 'nothing-left', left.length ? `${left.length} processes` : '')
  const log = fs.readFileSync(path.join(row.folder, 'log'), 'utf8').trim()
  if (failed && log) process.stderr.write(`${name}: the programs said:\n${log.split('\n').slice(-40).join('\n')}\n`)
  fs.rmSync(row.folder, { recursive: true, force: true, maxRetries: 5 })
}

// runClients runs the cases of the SDK for TypeScript.
const runClients = (clientEra, serverEra, front, http) => async (name, folder) => {
  const bridged = front === 'direct' && clientEra !== serverEra // the SDK itself speaks to old clients of a new server
  const row = new Row({ mcpactor, folder, front, http, server: server(serverEra, ...(bridged ? ['--legacy'] : [])) })
  const context = { row, clientEra, serverEra }
  let failure = await attempt(async () => {
    await row.start()
    context.client = await row.open(clientEra)
  })
  await run(name, { ...cases, ...(front !== 'direct' && !http && kills) }, context, failure)
  if (clientEra === 'new') {
    failure ??= await attempt(async () => { context.manual = await row.open('new', { manual: true }) })
    await run(name, rounds, context, failure)
  }
  if (front === 'listen') await run(name, { 'other-era-beside': otherEraBeside }, context)
  await end(name, row)
}

// otherEraBeside has clients of both eras at one address.
const otherEraBeside = async ({ row }) => {
  const [one, two] = await Promise.all(eras.map((era) => row.open(era)))
  const results = await Promise.all([one.call('echo', { id: 'o1', text: 'x' }), two.call('echo', { id: 'o2', text: 'y' })])
  same(results.map(textOf).join(), 'x,y')
}

// runTasks runs the cases of tasks, in front of two servers.
const runTasks = (era, front) => async (name, folder) => {
  const config = path.join(folder, 'servers.json')
  const row = new Row({ mcpactor, folder, front, config })
  const { LEDGER, TASKS } = row.env
  const entry = (name) => [name, { command: process.execPath, args: [path.join(servers, 'tasks.mjs'), era, name], env: { LEDGER, TASKS } }]
  fs.writeFileSync(config, JSON.stringify({ mcpServers: Object.fromEntries(['a', 'b'].map(entry)) }))
  let client
  const failure = await attempt(async () => {
    await row.start()
    client = new PlainClient(era, row.target)
    await client.open()
    if (era === 'old') await toolsOf(client)
  })
  await run(name, tasksOf(era, row, client), undefined, failure)
  client?.kill()
  await end(name, row)
}

// runGo runs the cases of the SDK for Go, which are a program of their own.
const runGo = (clientEra, serverEra, front) => async (name, folder) => {
  const row = new Row({ mcpactor, folder, front, server: server(serverEra) })
  const failure = await attempt(() => row.start())
  if (failure) {
    say('FAIL', name, 'start', failure.message)
  } else {
    const { target } = row
    const args = target instanceof URL ? [target.href] : [target.command, ...target.args]
    const options = { cwd: servers, env: row.env, timeout: 4 * limit, killSignal: 'SIGKILL' }
    const [error, lines, said] = await new Promise((done) => execFile(gopeer, [clientEra, ...args], options, (...outcome) => done(outcome)))
    for (const line of lines.split('\n').filter(Boolean)) {
      const [verdict, case_, ...words] = line.split(' ')
      say(verdict, name, case_, words.join(' '))
    }
    if (error) say('FAIL', name, 'end', error.killed ? 'it took too long' : said.slice(-200))
  }
  await end(name, row)
}

const rows = new Map()
for (const front of ['stdio', 'listen', 'direct']) {
  for (const clientEra of eras) {
    for (const serverEra of eras) {
      if (front === 'direct' && clientEra === 'new' && serverEra === 'old') continue // nothing is between them
      rows.set(`${clientEra}-client/${serverEra}-server/${front}`, runClients(clientEra, serverEra, front, false))
      if (front === 'direct' && clientEra !== serverEra) continue
      rows.set(`${clientEra}-client-go/${serverEra}-server/${front}`, runGo(clientEra, serverEra, front))
    }
  }
  if (front !== 'direct') for (const era of eras) rows.set(`${era}-client/${era}-server/${front}/tasks`, runTasks(era, front))
}
for (const era of eras) rows.set(`${era}-client/new-server-http/listen`, runClients(era, 'new', 'listen', true))
rows.set('new-client/new-server-http/direct', runClients('new', 'new', 'direct', true))

if (mcpactor === '--rows') {
  for (const name of rows.keys()) console.log(name)
} else {
  for (const name of chosen.length ? chosen : rows.keys()) {
    await rows.get(name)(name, fs.mkdtempSync(path.join(folder, 'row-')))
  }
}
fs.rmSync(folder, { recursive: true, force: true })
process.exit(failed ? 1 : 0)
