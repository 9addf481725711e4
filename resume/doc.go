// Package resume keeps what it takes to attach to sessions that servers still
// know: stores for [mcpbridge.Store].
//
//   - [File] survives a restart of our process: one file, for one process at a
//     time.
//   - [Memory] does not: it is for tests, and for handing sessions over inside
//     one process.
//
// # Secrets
//
// A record has no credentials, but whoever knows a session id and the cookies that
// go with it may be able to use the session. So the file is ours alone (mode 0600), one that others may
// read is refused, and no error and no printed value has an id in it. What was
// deleted stays in the free pages of the file until they are used again: to be
// rid of it, delete the file. On Windows the mode says nothing and is not
// looked at: put the file into a directory that is yours.
//
// # Concurrency
//
// All methods may be called from any goroutine.
package resume
