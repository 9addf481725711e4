// Package resume stores what is needed to resume sessions. It has two stores for
// [mcpbridge.Store]:
//
//   - [File] survives a restart of the process. It is one file, for one process at a time.
//   - [Memory] does not. It is for tests, and for passing sessions from one supervisor to
//     the next inside one process.
//
// # Secrets
//
// A record has no credentials, but a session id, together with its cookies, may be enough
// to use the session. For this reason the file is private (mode 0600), a file that others
// may read is rejected, and no error and no printed value contains a session id. A deleted
// record stays in the free pages of the file until they are used again: delete the file to
// remove it for certain. On Windows the mode of a file says nothing and is not checked: put
// the file into a private directory.
//
// # Concurrency
//
// All methods may be called from any goroutine. Save replaces a record whatever it is. [File.Swap] and
// [Memory.Swap] replace it only if it has a version: of several changes from one version, one succeeds.
package resume
