package mcpbridge

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/internal/limits"
)

// Handle declares a kind of handle of one server: a tool mints it, such as a browser, a connection or a process, later calls have it as an
// argument, and another tool releases it. The supervisor then releases each when the last scope that has used it has ended, bounds how
// many there are, and lets scopes wait for their turn.
//
//	Handles: []mcpbridge.Handle{{
//		Mint: "open_browser", Path: "browser_id", Release: "close_browser", Argument: "browser_id",
//		List: "list_browsers", Listed: `"id": "([^"]+)"`, Gone: "no such browser",
//	}},
//
// Nothing is recognised without a declaration: what is released by mistake may be somebody else's. A handle belongs to whoever has minted
// it and to all who have used it since: scopes, or for a scope that serves several, who [messages.HolderAttribute] names. A scope ends with a
// command that closes it, with its owner, see [messages.Bind], or with the supervisor; its sessions may be evicted and come back meanwhile. A handle is
// not released while the supervisor knows that somebody holds it, see Idle and Bound.
//
// The Store of the supervisor has the intent before a mint is sent, and the handle as soon as it is known. Without a store, handles outlive this
// process unreleased if it is killed. A mint is sent again only if it certainly did not run. What could not be released is named: in
// [messages.HandleLeft], and in what a close command answers.
type Handle struct {
	// Mint is the tool whose result has a new handle.
	Mint string
	// Path is where the handle is in that result: in its structured content, or in its text as JSON, such as "session.id" or "pages.0.id". A number is
	// an index. Either Path or Pattern is set.
	Path string
	// Pattern is a regular expression of package regexp. Its first group is the handle, in the text of the result.
	Pattern string
	// Release is the tool that ends a handle.
	Release string
	// Argument is the argument that has the handle, of Release and of all other tools that use it. If Release takes a number, it gets one. Defaults to the last
	// part of Path. Two kinds of a server have different arguments, unless both are Unique.
	Argument string
	// List is a tool that lists the handles that there are, without arguments. It is asked what became of a handle if the answer of Release was
	// lost, and before those of an earlier process are released. Defaults to none.
	List string
	// Listed is a regular expression for the text of the result of List. It matches once for each handle, which is its first group.
	Listed string
	// Gone is a regular expression that matches the text with which Release, or an error of another tool, says that there is no such handle. Defaults
	// to none: a handle is left when Release returns an error.
	Gone string
	// Full is a regular expression that matches the text of the error with which Mint says that there are too many. The call then waits for its turn, and the
	// number of handles that there were is taken for Max. Defaults to none.
	Full string
	// Max is how many handles of the kind there may be at once, over all scopes. A mint beyond it waits for its turn, until its deadline. Scopes take
	// turns. Defaults to 0: no bound, but what Full teaches.
	Max int
	// Idle is the time without calls after which a handle is released although its scope has not ended. Defaults to 0: never.
	Idle time.Duration
	// Own says that List has only handles that this supervisor has minted: then those that it does not know are of mints whose answers were lost,
	// and are released. No other kind has the same List then.
	Own bool
	// Unique says that the server never mints the same handle for two things, also after a restart: if Mint returns one that somebody holds, both
	// hold it. Defaults to whether the handle has 16 characters or more. One that is not unique, such as the number of a process, is not released
	// after the connection was lost, a reload has changed the server, or this process has restarted: it may be another one by then. It is left, and
	// named. With a Command, one that is not unique is that of its scope: each has a process of its own, which counts for itself.
	Unique bool
	// Bound says that the handle ends with the MCP session that has minted it. That session is not evicted while the handle is held. If it is lost,
	// so is the handle. When its scope ends, the handle is released, whoever holds it.
	Bound bool
}

// ArgumentName returns Argument, or what it defaults to.
func (h *Handle) ArgumentName() string {
	if h.Argument != "" {
		return h.Argument
	}
	return h.Path[strings.LastIndexByte(h.Path, '.')+1:]
}

// Validate returns an error that names the first field that is wrong, or nil.
func (h *Handle) Validate() error {
	switch {
	case h.Mint == "":
		return errors.New("mint: is empty")
	case h.Release == "":
		return errors.New("release: is empty: without it nothing can be released")
	case h.Mint == h.Release:
		return errors.New("release: is the tool of mint")
	case (h.Path == "") == (h.Pattern == ""):
		return errors.New("path: set either path or pattern, which say where the handle is in the result of mint")
	case h.Path != "" && slices.Contains(strings.Split(h.Path, "."), ""):
		return fmt.Errorf("path: %q has an empty part: write names and indices with dots between them", h.Path)
	case h.Argument == "" && h.Path == "":
		return errors.New("argument: is empty, and only a path has a name to take for it")
	case h.Argument == "" && strings.Trim(h.ArgumentName(), "0123456789") == "":
		return errors.New("argument: is empty, and path ends with an index")
	case h.List != "" && (h.List == h.Mint || h.List == h.Release):
		return errors.New("list: is the tool of mint or release")
	case (h.List == "") != (h.Listed == ""):
		return errors.New("list: needs listed, and listed needs list")
	case h.Own && h.List == "":
		return errors.New("own: is for a list")
	case h.Max < 0:
		return fmt.Errorf("max: %d is negative: 0 is no bound", h.Max)
	case h.Max > limits.Of(-1):
		return fmt.Errorf("max: %d is more than %d: 0 is no bound", h.Max, limits.Of(-1))
	case h.Idle < 0:
		return fmt.Errorf("idle: %v is negative: 0 is never", h.Idle)
	}
	for _, pattern := range []struct {
		name, text string
		groups     int
	}{{"pattern", h.Pattern, 1}, {"listed", h.Listed, 1}, {"gone", h.Gone, 0}, {"full", h.Full, 0}} {
		compiled, err := regexp.Compile(pattern.text)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %q is not a regular expression: %w", pattern.name, pattern.text, err)
		case pattern.text != "" && compiled.NumSubexp() < pattern.groups:
			return fmt.Errorf("%s: %q has no group: the first group is the handle", pattern.name, pattern.text)
		case pattern.text != "" && pattern.groups == 0 && compiled.MatchString(""):
			return fmt.Errorf("%s: %q matches any text, or none", pattern.name, pattern.text)
		}
	}
	return nil
}

// checkHandles returns an error that names the first declaration that is wrong, or nil.
func checkHandles(handles []Handle) error {
	for i := range handles {
		one := &handles[i]
		if err := one.Validate(); err != nil {
			return fmt.Errorf("handles[%d].%w", i, err)
		}
		for j := range handles[:i] {
			switch other := &handles[j]; {
			case one.Mint == other.Mint:
				return fmt.Errorf("handles[%d].mint: %q is that of handles[%d]", i, one.Mint, j)
			case one.ArgumentName() == other.ArgumentName() && (!one.Unique || !other.Unique):
				return fmt.Errorf("handles[%d].argument: %q is that of handles[%d]: set unique for both, if no two handles are ever the same", i, one.ArgumentName(), j)
			case one.List != "" && one.List == other.List && (one.Own || other.Own):
				return fmt.Errorf("handles[%d].list: %q is that of handles[%d]: own is for a list of one kind", i, one.List, j)
			}
		}
	}
	return nil
}
