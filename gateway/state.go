package gateway

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/messages"
)

// leaves notes that a tool may have run in a session, and may have left state there. If the client may have left state in an
// earlier session, that state is gone, and the client must be told. It need not be told if clients share the session, if all
// calls were of tools that only read, or if the server keeps nothing for a session, which [served.tell] finds out.
//
// Both notes are one change of the record, and so one write. The first call in a session waits for that, so that a kill after
// the result loses no note. A kill loses the note for the client if it comes after the record says that the client was told,
// and before the client has the result.
func (s *served) leaves(generation uint64, tool string) {
	if s.isShared() || isStateless(s.introduced()) {
		return
	}
	changed := s.c.note(func(k *record) bool {
		at := k.State[s.name]
		if at >= generation {
			return false
		}
		if at > 0 {
			if k.Owed == nil {
				k.Owed = map[string]bool{}
			}
			k.Owed[s.name] = false
		}
		switch readsOnly := s.lists["tools/list"].readsOnly(tool); {
		case readsOnly:
			delete(k.State, s.name)
			return at > 0
		case k.State == nil:
			k.State = map[string]uint64{}
		}
		k.State[s.name] = generation
		return true
	})
	if changed {
		s.c.keepBriefly()
	}
}

// explained notes that the client is told of a failure. If its session may be gone, the text says so of its state, see
// [toolset.Explain]. A client that is stateless is not told again: the next call may be that of another program.
func (s *served) explained(f *messages.Failure) {
	isTold := f.Code == messages.CodeLost || f.Code == messages.CodeExpired || f.Code == messages.CodeClosed
	if isTold && s.c.isStateless {
		s.c.isTold()
	}
}

// isTold notes that the client need not be told of state that is gone.
func (c *client) isTold() {
	c.note(func(k *record) bool {
		k.State, k.Owed = nil, nil
		return true
	})
}

// readsOnly reports whether a tool is known to change nothing.
func (l *list) readsOnly(tool string) bool { return l.item(tool).readsOnly }

// isStateless reports whether the server keeps nothing for the session of the client.
func (s *served) isStateless() bool {
	info, err := s.c.g.do.Do(s.c.ctx, &messages.Open{Header: s.header(downPatience)})
	return err == nil && info.(*messages.SessionInfo).Stateless
}

// owes reports whether the client must be told that state is gone.
func (s *served) owes() bool {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	_, owed := s.c.record.Owed[s.name]
	return owed
}

// tell returns the result of a tool, with a note for the model if state of the client is gone. A result that code may read, such
// as JSON, gets no note: the note waits for a later result, and the client gets a log message.
func (s *served) tell(r *mcpserver.Request, raw json.RawMessage) any {
	if !s.owes() {
		return raw
	}
	if s.isStateless() {
		s.c.note(func(k *record) bool {
			delete(k.Owed, s.name)
			return true
		})
		return raw
	}
	note := fmt.Sprintf("Note: server %q has a new session. State that it kept in the last one, such as a login or an open page, is gone.", s.name)
	var noted any
	logs := false
	s.c.note(func(k *record) bool {
		isLogged, owed := k.Owed[s.name]
		if !owed {
			return false
		}
		if noted = withNote(raw, note); noted != nil {
			delete(k.Owed, s.name)
			return true
		}
		logs = !isLogged
		k.Owed[s.name] = true
		return logs
	})
	if logs {
		s.c.Notify("notifications/message", &mcp.LoggingMessageParams{Level: "warning", Logger: "mcpactor", Data: note}, r)
	}
	if noted != nil {
		return noted
	}
	return raw
}

// withNote returns the result of a tool with a note. If the result is a single text, the note is appended to that, because some
// clients show only a single text. Otherwise it becomes another part. withNote returns nil if code may read the result: a single
// text that is JSON, or structured content, unless it is an error.
func withNote(raw json.RawMessage, note string) any {
	result, parts := mcpserver.ObjectOf(raw), []json.RawMessage{}
	json.Unmarshal(result["content"], &parts) //nolint:errcheck // it has none then
	isError := string(result["isError"]) == "true"
	if len(parts) == 0 && !isError {
		return nil
	}
	if len(parts) == 1 {
		if only := mcpserver.ObjectOf(parts[0]); only.Text("type") == "text" {
			text := only.Text("text")
			if !isError && isJSON(text) {
				return nil
			}
			parts[0], _ = mcpserver.Encode(only.With("text", text+"\n\n"+note))
			return result.With("content", parts)
		}
	}
	part, _ := mcpserver.Encode(map[string]string{"type": "text", "text": note})
	return result.With("content", append(parts, part))
}

// isJSON reports whether a text is a JSON object, or an array.
func isJSON(text string) bool {
	text = strings.TrimSpace(text)
	return (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")) && json.Valid([]byte(text))
}
