// The suites' servers would listen on all addresses of the machine. Loaded before a
// suite, this has them listen on loopback. They ask for their port at once, which an
// address that is given to listen itself would be too late for.
const { Server } = require('node:net')

const { _listen2: listen } = Server.prototype
if (typeof listen !== 'function') {
  throw new Error('this Node listens in another way: see loopback.cjs')
}

Server.prototype._listen2 = function (address, port, type, ...rest) {
  return address ? listen.call(this, address, port, type, ...rest) : listen.call(this, '127.0.0.1', port, 4, ...rest)
}
