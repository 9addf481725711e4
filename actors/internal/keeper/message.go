package keeper

import (
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/handles"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/internal/results"
	"github.com/mcpactor/mcpactor/messages"
)

// Messages of the interceptor to the registry.
type (
	mintAsked    struct{ of *minting }
	mintAnswered struct {
		of         *minting
		answer     handles.Answer
		generation uint64 // of the MCP session
	}
	mintFailed struct {
		of            *minting
		mayHaveMinted bool
	}
	useBegun struct {
		call  *messages.CallTool
		given []handles.Name
		reply chan<- begun
	}
	useEnded struct {
		of         []*handles.Use
		answers    []*handles.Answer // to each of them; nil if there is none
		mayHaveRun bool
	}
)

// begun is the reply to a useBegun.
type begun struct {
	uses  []*handles.Use
	stale bool
}

// ownCall brings a call of the keeper to the registry.
type ownCall struct{ call *contract.Call }

// About says what is called.
func (m *ownCall) About() string { return m.call.Key.String() }

// minting is a call that mints a handle.
type minting struct {
	*handles.Mint
	call    *messages.CallTool
	mailbox *mailbox.Mailbox
	store   store
	turn    chan messages.Code // granted when it may be sent, or why it is not
}

// Begin implements [contract.Mint].
func (m *minting) Begin() error { return m.store.save(m.Mint, "", 0) }

// Answered implements [contract.Mint].
func (m *minting) Answered(result messages.Result, generation uint64) {
	r, _ := result.(*messages.ToolResult)
	if r == nil {
		return
	}
	answer := m.Kind.Minted(r.Result)
	if m.goesOn(r) {
		answer = handles.Answer{None: true}
	}
	if answer.ID != "" {
		_ = m.store.save(m.Mint, answer.ID, generation) // it is logged
	}
	m.mailbox.PostUserMessage(&mintAnswered{m, answer, generation})
}

// goesOn reports whether a result is not that of the call yet, and its caller follows what becomes of it: another round, which is a mint of its own, or a
// task. What a task mints is not known.
func (m *minting) goesOn(r *messages.ToolResult) bool {
	return r.Verbatim != nil && (m.call.Extra["task"] != nil || m.call.AsIs && results.IsUnfinished(m.call.Method(), r.Verbatim))
}

// granted is what comes when it is the turn of a mint.
const granted messages.Code = ""

// refusals say why a mint is not sent, before its name.
var refusals = map[messages.Code]string{
	messages.CodeClosed: "its holder has ended before it was the turn of ", messages.CodeBusy: "too many calls wait for a handle of ",
	messages.CodeDraining: "the supervisor is stopping, and mints no handle with ",
}
