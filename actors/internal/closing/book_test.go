package closing

import (
	"fmt"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

func keyOf(i int) messages.Key { return messages.Key{Server: "s", Scope: fmt.Sprintf("%04d", i)} }

func none(messages.Key) bool { return false }

// begin returns a book with leftovers of some keys, and a command that closes all.
func begin(leftovers int) (*Book, *Command) {
	b := New(MinLeftovers)
	for i := range leftovers {
		b.Leftovers.Add(keyOf(i), []contract.Leftover{{Resume: &mcpbridge.Resume{SessionID: fmt.Sprint(i)}, Reason: "refused"}})
	}
	return b, b.Begin(Order{Match: func(messages.Key) bool { return true }}, nil)
}

// cleanup returns the session that closes what is left of a key.
func cleanup(key messages.Key) *table.Registration {
	return &table.Registration{Key: key, PID: &actor.PID{Id: key.Scope}, Session: admission.Session{Cleanup: true}}
}

func TestLeftoversAreClosedFewAtATimeBeforeTheReply(t *testing.T) {
	b, c := begin(40)
	var running []*table.Registration
	for cleaned := 0; !b.End(c); {
		key, closes, more := b.Next(c, none)
		if !more {
			require.NotEmpty(t, running)
			require.Equal(t, []*Command{c}, b.Closed(running[0], 1, nil))
			running = running[1:]
			continue
		}
		require.True(t, closes)
		require.Equal(t, keyOf(cleaned), key, "in order")
		cleaned++
		left, leave, is := b.CleanUp(c, key, true)
		require.True(t, is)
		require.Len(t, left, 1)
		require.False(t, leave)
		running = append(running, cleanup(key))
		require.True(t, b.Wait(c, running[len(running)-1]))
		require.LessOrEqual(t, len(running), maxCleanups)
	}
	require.Equal(t, 40, c.Reply.Sessions)
	require.Empty(t, c.Reply.Left)
	require.Zero(t, b.Count())
	require.Empty(t, b.waits)
}

func TestWhatThereIsNoTimeForIsKeptForTheNextCommand(t *testing.T) {
	b, c := begin(3)
	c.Stored = true
	_, _, is := b.CleanUp(c, keyOf(0), true)
	require.True(t, is)
	first := cleanup(keyOf(0))
	b.Wait(c, first)
	b.Listed(c, []messages.Key{keyOf(7)})
	require.False(t, b.End(c))
	require.Equal(t, []*table.Registration{first}, b.GiveUp(c))
	require.True(t, b.End(c))
	require.Len(t, c.Reply.Left, 4)
	require.Empty(t, b.Closed(first, 1, nil), "it was answered")
	require.Empty(t, b.Left(keyOf(0)))
	require.Len(t, b.Left(keyOf(1)), 1)
	require.Len(t, b.Left(keyOf(2)), 1)
}

func TestLeftoversOfAKeyOfAnotherMemberAreKept(t *testing.T) {
	b, c := begin(1)
	_, _, is := b.CleanUp(c, keyOf(0), false)
	require.False(t, is)
	require.True(t, b.End(c))
	require.Len(t, c.Reply.Left, 1)
	require.Len(t, b.Left(keyOf(0)), 1)
}

func TestTheRecordsOfKeysWithSessionsAreTheirs(t *testing.T) {
	b, c := begin(0)
	b.Listed(c, []messages.Key{keyOf(0), keyOf(1)})
	has := func(key messages.Key) bool { return key == keyOf(0) }
	require.False(t, c.Concerns(keyOf(0), true))
	require.True(t, c.Concerns(keyOf(1), false))
	key, closes, more := b.Next(c, has)
	require.True(t, more)
	require.Equal(t, keyOf(0), key)
	require.False(t, closes)
	key, closes, _ = b.Next(c, has)
	require.Equal(t, keyOf(1), key)
	require.True(t, closes)
	_, _, is := b.CleanUp(c, key, true)
	require.True(t, is)
	_, _, is = b.CleanUp(c, key, true)
	require.False(t, is, "it is being done")
}

func TestCommandsAreFoundByTheKeysThatTheyConcern(t *testing.T) {
	b, wide := begin(0)
	narrow := b.Begin(Order{Match: func(k messages.Key) bool { return k.Scope == "a" }, Scopes: []string{"a"}}, nil)
	of := func(scope string) (all []*Command) {
		for c := range b.OfKey(messages.Key{Server: "s", Scope: scope}) {
			all = append(all, c)
		}
		return all
	}
	require.Equal(t, []*Command{wide, narrow}, of("a"))
	require.Equal(t, []*Command{wide}, of("b"))
	require.True(t, b.End(narrow))
	require.Empty(t, b.ofScope)
	require.Equal(t, []*Command{wide}, of("a"))
}
