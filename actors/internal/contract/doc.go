// Package contract has what the registry and the sessions share: the configuration, a call, and the
// messages between them. It also has what user code implements for them.
package contract
