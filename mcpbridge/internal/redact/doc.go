// Package redact decides what may be said in an error text: it finds the secrets of a server's
// configuration and blacks them out.
package redact
