package toolset

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// maxHeld bounds the handles that [Toolset.Held] names.
const maxHeld = 20

// Held tells the model which handles the conversation holds, see [github.com/mcpactor/mcpactor/mcpbridge.Handle]: in a short note, such as for a model
// whose context was compacted, or that begins anew with the same scope. The note says with which tool each is released. It is empty if nothing is
// held. Whoever reads it can use the handles.
//
// If ctx has the attribute [messages.HolderAttribute], the note has what that holder holds. Without it, the scope of a [Filter] that is not the
// one of the toolset is left out: others share it. The error is a [*messages.Failure].
func (t *Toolset) Held(ctx context.Context) (string, error) {
	set, err := t.listed(ctx)
	if err != nil {
		return "", err
	}
	holder, _ := messages.AttributesOf(ctx).Get(messages.HolderAttribute)
	scopes := []string{t.scope()}
	if holder != "" {
		scopes = t.scopes()
	}
	var held []messages.HeldHandle
	unanswered := false
	for _, scope := range scopes {
		reply, err := t.client.Do(ctx, &messages.ListHandles{Scope: scope, Holder: holder})
		if err != nil {
			return "", err
		}
		list := reply.(*messages.HandleList)
		unanswered = unanswered || len(list.Unanswered) > 0
		for _, h := range list.Handles {
			if t.listOf(messages.Key{Server: h.Key.Server, Scope: scope}) != nil { // another scope may have minted it
				held = append(held, h)
			}
		}
	}
	slices.SortStableFunc(held, func(a, b messages.HeldHandle) int { return a.Minted.Compare(b.Minted) })
	return set.describe(held, unanswered, time.Now()), nil
}

// describe says in words what is held.
func (s *Set) describe(held []messages.HeldHandle, unanswered bool, now time.Time) string {
	var lines []string
	switch n := len(held); {
	case n == 1:
		lines = []string{"You hold 1 handle. Release it when you are done with it."}
	case n > 1:
		lines = []string{fmt.Sprintf("You hold %d handles. Release each when you are done with it.", n)}
	}
	for i := range held[:min(len(held), maxHeld)] {
		lines = append(lines, s.describeOne(&held[i], now))
	}
	if more := len(held) - maxHeld; more > 0 {
		lines = append(lines, fmt.Sprintf("- and %d more, which are newer", more))
	}
	if unanswered {
		lines = append(lines, "There may be handles that could not be listed now.")
	}
	return strings.Join(lines, "\n")
}

// describeOne says in words what a handle is. Only a tool that the model may call is named to release it.
func (s *Set) describeOne(h *messages.HeldHandle, now time.Time) string {
	server := h.Key.Server
	line := fmt.Sprintf("- %s %s of server %q, minted by %s %s", worded(h.Argument), worded(h.Handle), server, worded(s.nameOf(server, h.Mint)), ago(now.Sub(h.Minted)))
	release := s.nameOf(server, h.Release)
	switch {
	case h.Shared:
		return line + ": others hold it as well, so leave it to them"
	case s.Tool(release) == nil:
		return line + ": it is released when the conversation ends"
	}
	return line + ": release it with " + release
}

// nameOf returns the name under which the model knows a tool, or else the name that its server gives it.
func (s *Set) nameOf(server, tool string) string {
	if name := SafeName(server, tool); s.Tool(name) != nil {
		return name
	}
	return tool
}

// plainWord matches what cannot be mistaken for words to the model.
var plainWord = regexp.MustCompile(`^[\w.:/-]{1,128}$`)

// worded renders a text of a server: as it is, or in quotation marks if it is not a plain word.
func worded(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return fmt.Sprintf("%.*q", maxQuoted, text)
}

// ago says how long ago something was.
func ago(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		switch n := int(d / unit.of); {
		case n == 1:
			return "1 " + unit.name + " ago"
		case n > 1:
			return fmt.Sprintf("%d %ss ago", n, unit.name)
		}
	}
	return "just now"
}
