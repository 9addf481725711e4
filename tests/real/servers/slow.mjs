// The server of another script, which reads nothing before DELAY ms have passed, as npx does while it downloads a server:
// slow.mjs DELAY.
const [, , delay] = process.argv
setTimeout(() => import('./ledger.mjs'), Number(delay))
