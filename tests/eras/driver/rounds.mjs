// The cases of new clients that send each round of a call themselves, as the protocol has them.
import { limit, must, same, textOf, toldOf, until, within } from './checks.mjs'

// question returns the key of the question of a result.
export const question = (result) => {
  must(result.resultType === 'input_required' && result.inputRequests, 'no question: ' + JSON.stringify(result))
  return Object.keys(result.inputRequests)[0]
}

// reply returns what the next round has beside the parameters of the first one. A state that came goes back as it is.
export const reply = (result, name) => ({
  inputResponses: { [question(result)]: { action: 'accept', content: { name } } },
  ...(result.requestState !== undefined && { requestState: result.requestState }),
})

const count = (row, id) => [row.lines('enter', id).length, row.lines('done', id).length].join()

export const rounds = {
  // A forged state is refused, and ends nothing.
  async 'round-tampered'({ row, manual }) {
    const asked = await manual.round('t1')
    must(asked.requestState !== undefined, 'no requestState')
    const state = asked.requestState
    const middle = Math.floor(state.length / 2)
    const forged = state.slice(0, middle) + (state[middle] === 'A' ? 'B' : 'A') + state.slice(middle + 1)
    const words = await toldOf(within(limit, manual.round('t1', { ...reply(asked, 'Eve'), requestState: forged }), 'the forged round'))
    must(!row.lines('done', 't1').length, 'run with a forged state')
    same(textOf(await manual.round('t1', reply(asked, 'Ada'))), 'hello Ada t1')
    must(count(row, 't1') === '1,1', 'not run once')
    return words
  },

  // So is the state of another call, whose true round works after it.
  async 'round-of-another-call'({ row, manual }) {
    const asked = await manual.round('t2')
    const words = await toldOf(within(limit, manual.round('t3', reply(asked, 'Eve')), 'the round'))
    must(!row.lines('done', 't2').length && !row.lines('done', 't3').length, 'run with the state of another call')
    same(textOf(await manual.round('t2', reply(asked, 'Ada'))), 'hello Ada t2')
    return words
  },

  // Whether a new server lets a state be used twice is its own choice.
  async 'round-twice'({ row, manual, serverEra }) {
    if (serverEra === 'new') return 'skip: left to the server'
    const asked = await manual.round('t4')
    const first = textOf(await manual.round('t4', reply(asked, 'Ada')))
    const second = await within(limit, manual.round('t4', reply(asked, 'Ada')), 'the second').then(textOf, (error) => error.message)
    same(first, 'hello Ada t4')
    must(count(row, 't4') === '1,1', 'run twice')
    return second
  },

  // Over stdio, nothing says to which of two calls a question of an old server belongs. The calls of one client may get the
  // questions of each other.
  async 'rounds-crossed'({ row, manual, serverEra }) {
    const [one, two] = await Promise.all([manual.round('t5'), manual.round('t6')])
    const second = await manual.round('t6', reply(two, 'Two'))
    const first = await manual.round('t5', reply(one, 'One'))
    const got = [textOf(first), textOf(second)].join()
    must(got === 'hello One t5,hello Two t6' || serverEra === 'old' && got === 'hello Two t5,hello One t6', got)
    for (const id of ['t5', 't6']) must(row.lines('enter', id).length === 1, 'run twice')
  },

  // Two clients that ask at once never get the questions of each other: what belongs to neither for sure is refused, and told.
  // The call that begins first asks last.
  async 'asked-at-once'({ row, serverEra }) {
    const calls = []
    for (const [name, before] of [['One', 700], ['Two', 300]]) {
      const client = await row.open('new', { answer: () => ({ action: 'accept', content: { name } }) })
      const call = client.call('ask', { id: 'once-' + name, before })
      calls.push(call.then((result) => ({ name, text: textOf(result), isError: result.isError })))
      await until(() => row.lines('enter', 'once-' + name).length, limit, 'the call')
    }
    const told = []
    for (const { name, text, isError } of await Promise.all(calls)) {
      if (serverEra === 'old' && isError) told.push(text)
      else if (serverEra === 'new') same(text, `hello ${name} once-${name}`)
      // Clients with the same token are one client, and over stdio nothing says to which of two calls a question of an old server belongs.
      else must(/^hello (One|Two) once-/.test(text) && text.endsWith(name), text)
      must(row.lines('enter', 'once-' + name).length === 1, 'not run once')
    }
    return told.join('; ')
  },

  // A server asks again for an answer that is missing, and ignores answers that it has not asked for.
  async 'round-incomplete'({ row, manual }) {
    const asked = await manual.round('t9')
    const { requestState } = reply(asked, 'Ada')
    const again = await manual.round('t9', { requestState, inputResponses: { unknown: { action: 'decline' } } })
    same(question(again), question(asked))
    same(textOf(await manual.round('t9', reply(again, 'Ada'))), 'hello Ada t9')
    must(row.lines('done', 't9').length === 1, 'not done once')
  },

  // Nothing says that a round comes over the connection of the round before.
  async 'round-from-other-client'({ row, manual }) {
    if (!(row.target instanceof URL)) return 'skip: only over HTTP'
    const asked = await manual.round('t7')
    const other = await row.open('new', { manual: true })
    same(textOf(await other.round('t7', reply(asked, 'Ada'))), 'hello Ada t7')
    must(count(row, 't7') === '1,1', 'not run once')
  },

  // A new server gets the answer after a restart of mcpactor serve. The question of an old one has ended with it.
  async 'restart-while-asked'({ row, manual, serverEra }) {
    const asked = await manual.round('t8')
    question(asked)
    await row.restartServe()
    const again = await row.open('new', { manual: true })
    const call = within(limit, again.round('t8', reply(asked, 'Ada')), 'the round')
    if (serverEra === 'new') {
      const text = textOf(await call) // with a note, if it says that the process of the server is another one
      must(text.startsWith('hello Ada t8'), text)
      must(row.lines('done', 't8').length === 1, 'not done once')
      return
    }
    const words = await toldOf(call)
    must(count(row, 't8') === '1,0', 'run twice')
    must(!/did not run/.test(words), words)
    return words
  },
}
