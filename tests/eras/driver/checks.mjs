// What the cases share: waiting that ends, conditions, and how a failure is told.
import net from 'node:net'

// limit is how long, in milliseconds, a case waits for what must come: long enough for a busy machine.
export const limit = 20000

export const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds))

// must fails the case unless a condition holds.
export const must = (holds, text) => {
  if (!holds) throw new Error(text)
}

// within returns what a promise returns, or fails when the time is over.
export const within = (milliseconds, promise, what) => {
  let timer
  const over = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`${what} took more than ${milliseconds / 1000} s`)), milliseconds)
  })
  return Promise.race([promise, over]).finally(() => clearTimeout(timer))
}

// until returns the first true value of a test, or fails when the time is over.
export const until = async (test, milliseconds, what) => {
  for (const end = Date.now() + milliseconds; ; await pause(25)) {
    const found = await test()
    if (found) return found
    must(Date.now() < end, 'not seen: ' + what)
  }
}

// same fails the case unless two texts are equal.
export const same = (got, want) => must(got === want, `${JSON.stringify(got)}, not ${JSON.stringify(want)}`)

// textOf returns the texts of a result of a tool.
export const textOf = (result) => (result.content ?? []).map((content) => content.text).join('|')

// toldOf returns the words with which a call failed. It fails the case if the call did not fail, or if nobody answered it.
export const toldOf = async (call) => {
  let result
  try {
    result = await call
  } catch (error) {
    must(!/took more than|timed out|method not found/i.test(error.message), error.message)
    return error.message
  }
  must(result.isError, 'not told of the failure: ' + JSON.stringify(result))
  return textOf(result)
}

// freePort returns a port on which nothing listens.
export const freePort = () => new Promise((done) => {
  const server = net.createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address()
    server.close(() => done(port))
  })
})

// listening waits until something listens on a port.
export const listening = (port, what) => until(() => new Promise((done) => {
  const connection = net.connect(port, '127.0.0.1', () => {
    connection.end()
    done(true)
  })
  connection.on('error', () => done(false))
}), limit, what + ' listens')
