// The tools that are alike in both eras. Each execution is a line of the file LEDGER: WHAT ID PID.
import { appendFileSync } from 'node:fs'
import { z } from 'zod'

export const uri = 'test://r'
export const identified = z.object({ id: z.string() })
export const capabilities = { logging: {}, resources: { subscribe: true, listChanged: true }, tools: { listChanged: true } }

// asking are the arguments of the tool that asks: how long it waits before its question, after the answer, and after it is done.
export const asking = identified.extend({ before: z.number().default(0), after: z.number().default(0), late: z.number().default(0) })

export const note = (what, id) => appendFileSync(process.env.LEDGER, `${what} ${id} ${process.pid}\n`)
export const text = (said, isError = false) => ({ content: [{ type: 'text', text: said }], ...(isError && { isError }) })
export const question = (field) => ({
  message: field + '?',
  requestedSchema: { type: 'object', properties: { [field]: { type: 'string' } }, required: [field] },
})
export const sampling = { messages: [{ role: 'user', content: { type: 'text', text: 'q' } }], maxTokens: 9 }

export const pause = (milliseconds, signal) => new Promise((done, fail) => {
  const timer = setTimeout(done, milliseconds)
  signal?.addEventListener('abort', () => {
    clearTimeout(timer)
    fail(new Error('aborted'))
  }, { once: true })
})

let flipped = false // for all instances of the server in this process

// register registers the tools, and a resource. What differs is the context of a call, which contextOf returns as
// {signal, progressToken, notify(method, params), log(level, data)}, and how clients are told of an update and of a new list.
export const register = (server, contextOf, { updated, listChanged = () => {} }) => {
  const tool = (name, inputSchema, run) => server.registerTool(name, { description: name, inputSchema }, (args, extra) => run(args, contextOf(extra)))

  tool('echo', z.object({ id: z.string(), text: z.string() }), async (args) => {
    note('echo', args.id)
    return text(args.text)
  })

  tool('slow', z.object({ id: z.string(), ms: z.number() }), async (args, { signal, progressToken, notify }) => {
    note('slow', args.id)
    try {
      for (let progress = 1; progress <= 4; progress++) {
        await pause(args.ms / 4, signal)
        if (progressToken !== undefined) await notify('notifications/progress', { progressToken, progress, total: 4 })
      }
      await pause(30, signal) // the SDK 1 loses progress that comes with the result
    } catch (error) {
      note('cancelled', args.id)
      throw error
    }
    return text('done')
  })

  tool('log', identified, async (args, { log }) => {
    await log('info', 'line-' + args.id)
    return text('logged')
  })

  const extra = tool('extra', identified, async (args) => text('extra ' + args.id))
  if (!flipped) extra.disable()
  tool('flip', identified, async () => {
    flipped = !flipped
    if (flipped) extra.enable()
    else extra.disable()
    listChanged()
    return text('flipped')
  })

  tool('touch', identified, async () => {
    await updated()
    return text('touched')
  })

  server.registerResource('r', uri, { description: 'r' }, async () => ({ contents: [{ uri, text: 'r' }] }))
}
