// The cases in which a process is killed, with SIGKILL. Nothing runs twice, and nobody is told that a call did not run
// which did.
import { limit, must, pause, same, textOf, toldOf, until, within } from './checks.mjs'

export const kills = {
  async 'kill-between'({ row, client }) {
    await client.call('echo', { id: 'k1', text: 'a' })
    row.killServer('echo', 'k1')
    await pause(100)
    must(textOf(await client.call('echo', { id: 'k2', text: 'b' })).startsWith('b'), 'no answer')
    must(row.lines('echo', 'k2').length === 1, 'not run once')
  },

  async 'kill-in-call'({ row, client }) {
    const call = toldOf(within(limit, client.call('slow', { id: 'k3', ms: 60000 }), 'the call'))
    call.catch(() => {})
    await until(() => row.lines('slow', 'k3').length, limit, 'the call')
    row.killServer('slow', 'k3')
    const words = await call
    must(row.lines('slow', 'k3').length === 1, 'run twice')
    must(!/did not run/.test(words), words)
    return words
  },
}

// steps are the steps of a call that asks. Its arguments have it wait there, and the line of the ledger says that it is there.
const steps = {
  'first-request': { args: { before: 500 }, line: 'enter' },
  question: { args: {} },
  answer: { args: { after: 500 }, line: 'answered' },
  result: { args: { late: 500 }, line: 'done' },
}

for (const victim of ['server', 'serve']) {
  for (const [step, how] of Object.entries(steps)) {
    kills[`kill-${victim}-at-${step}`] = (context) => killAt(context, victim, step, how)
  }
}

const killAt = async ({ row, clientEra, serverEra }, victim, step, { args, line }) => {
  const id = `${victim}-${step}`
  const kill = async () => {
    if (victim === 'serve') return row.restartServe([client])
    row.killServer('enter', id)
    return pause(200)
  }
  let question
  const asked = new Promise((done) => { question = done })
  const client = await row.open(clientEra, {
    answer: async () => {
      question()
      if (!line) await kill()
      return { action: 'accept', content: { name: 'Ada' } }
    },
  })
  // When mcpactor serve is gone, an old client over HTTP waits for a response whose stream had not begun.
  const call = within(limit, client.call('ask', { id, ...args }, { timeout: 12000 }), 'the call').then(
    (result) => ({ words: textOf(result), isError: result.isError }), (error) => ({ words: error.message, isError: true }),
  )
  if (line) {
    await until(() => row.lines(line, id).length, limit, line)
    await kill()
  } else {
    await within(limit, Promise.race([asked, call]), 'the question')
  }
  const { words, isError } = await call

  // The next process of a new server understands an answer, since the request has all that it needs.
  if (victim === 'server' && step === 'question' && serverEra === 'new') {
    must(!isError && words.includes(`hello Ada ${id}`), words)
    must(row.lines('done', id).length === 1, 'not done once')
  }
  if (victim === 'server') must(!/took more than|timed out/i.test(words), words)
  if (!isError) must(row.lines('done', id).length === 1, 'not done, but answered: ' + words)
  must(!/did not run/i.test(words), words)
  for (const what of ['enter', 'answered', 'done']) must(row.lines(what, id).length <= 1, `run twice: ${what}`)

  const next = await row.open(clientEra)
  must(textOf(await next.call('echo', { id, text: 'on' })).includes('on'), 'nothing works after it')
  for (const what of ['enter', 'answered', 'done']) must(row.lines(what, id).length <= 1, `run twice later: ${what}`)
  same(textOf(await next.call('ask', { id: id + '-next' })), `hello Ada ${id}-next`)
  return isError ? words : undefined
}
