// The cases of tasks, of two servers behind mcpactor serve. Both have tasks with the same ids.
import { limit, must, same, textOf, until } from './checks.mjs'

// tasksOf returns the cases of an era. They follow each other: later ones need the tasks that the first one makes.
export const tasksOf = (era, row, client) => {
  const isNew = era === 'new'
  const made = {}
  const codeOf = (request) => request.then(() => 'a result', ({ code, message }) => code ?? message)

  const make = async (server, args) => {
    const name = server + '__work'
    const result = await client.request('tools/call', { name, arguments: args, ...(!isNew && { task: { ttl: 600000 } }) }, name)
    const task = isNew ? result : result.task
    must(task?.taskId && (!isNew || result.resultType === 'task'), 'no task: ' + JSON.stringify(result))
    return task.taskId
  }
  // of sends a request about a task. In the new protocol, all results but the one of the call are complete.
  const of = async (method, taskId, params) => {
    const result = await client.request(method, { taskId, ...params }, taskId)
    if (isNew) same(result.resultType, 'complete')
    return result
  }
  const get = (taskId) => of('tasks/get', taskId)
  const resultOf = async (taskId) => {
    const task = await until(async () => {
      const state = await get(taskId)
      return state.status !== 'working' && state
    }, limit, 'the end of the task')
    must(task.taskId === taskId, 'another id: ' + task.taskId)
    if (isNew) return textOf(task.result)
    const result = await of('tasks/result', taskId)
    const related = result._meta?.['io.modelcontextprotocol/related-task']?.taskId
    must(related === taskId, 'the result is related to ' + related)
    return textOf(result)
  }

  return {
    // An old client is told of the tasks of 2025-11-25, and a new one of the extension.
    async capability() {
      const { tasks, extensions } = client.introduction.capabilities
      must(isNew ? !tasks && extensions?.['io.modelcontextprotocol/tasks'] : tasks?.requests?.tools?.call && !extensions, JSON.stringify({ tasks, extensions }))
    },

    async create() {
      made.a = await make('a', { id: 'ia' })
      made.b = await make('b', { id: 'ib' })
      must(made.a !== made.b, 'both have one id')
      must(row.lines('work', 'ia').length === 1, 'not run once')
    },

    async result() {
      for (const [server, taskId] of Object.entries(made)) {
        const text = await resultOf(taskId)
        same(text, `${server} i${server}`)
      }
    },

    async cancel() {
      const taskId = await make('b', { id: 'ic', hangs: true })
      await of('tasks/cancel', taskId)
      same((await get(taskId)).status, 'cancelled')
    },

    async update() {
      if (!isNew) return 'skip: not in this era'
      const taskId = await make('b', { id: 'id', asks: true })
      must((await get(taskId)).inputRequests?.q, 'no question')
      await of('tasks/update', taskId, { inputResponses: { q: { action: 'accept', content: { name: 'Ada' } } } })
      same(await resultOf(taskId), 'b Ada')
    },

    async list() {
      if (isNew) return 'skip: not in this era'
      const { tasks } = await client.request('tasks/list', {})
      for (const taskId of Object.values(made)) must(tasks.some((task) => task.taskId === taskId), 'not listed: ' + JSON.stringify(tasks))
      must(new Set(tasks.map((task) => task.taskId)).size === tasks.length, 'an id is there twice')
    },

    async 'unknown-id'() {
      same(await codeOf(get('never')), -32602)
    },

    async 'not-declared'() {
      if (!isNew) return 'skip: not in this era'
      for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
        same(await codeOf(client.request(method, { taskId: made.a, ...(method === 'tasks/update' && { inputResponses: {} }) }, made.a, {})), -32021)
      }
      same(await codeOf(client.request('tools/call', { name: 'a__work', arguments: { id: 'ie' } }, 'a__work', {})), -32021)
    },

    async 'after-restart'() {
      if (row.front === 'listen') client.kill()
      else client.child.kill('SIGKILL')
      await row.restartServe()
      await client.open()
      if (!isNew) await toolsOf(client)
      same(await resultOf(made.b), 'b ib')
    },
  }
}

// toolsOf waits until the tools of both servers are listed.
export const toolsOf = (client) => until(async () => (await client.request('tools/list', {})).tools.length === 2, limit, 'the tools')
