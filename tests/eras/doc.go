// Package eras tests mcpactor serve between the eras of the protocol: old clients (2025-11-25, with sessions) and new ones
// (2026-07-28, with requests only) in front of old and new servers, over stdio and over HTTP. The clients and servers are
// on the official SDKs for TypeScript and Go, and for tasks without any.
//
// The driver, in the folder driver, is a program for Node that sees mcpactor only from outside. Each of its rows is a server
// with clients in front of it, and a subtest; so is each case of a row. A server notes what it runs in a ledger, so that a
// case knows what has run, and how often. Rows with "direct" in their names are without mcpactor: they show that the cases
// hold where client and server understand each other.
//
// The script install installs the SDKs. The tests have the build tag eras, and need Linux and Node:
//
//	tests/eras/install
//	go test -tags eras ./tests/eras
package eras
