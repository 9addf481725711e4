package toolset_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/callbook"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/toolset"
)

// Two conversations have sessions of their own, and share those of a server.
func TestPendingListsWhatWaitsForTheToolsetOldestFirst(t *testing.T) {
	for name, store := range stores() {
		t.Run(name, func(t *testing.T) {
			imagineWith(t, store, toolset.Config{Policy: deferring(), Servers: []toolset.Filter{{Name: "one"}, {Name: "two", Scope: "shared"}}}, func(ctx context.Context, w *world) {
				tools, err := toolset.New(nil, w.sup, toolset.Config{Scope: "t", Policy: deferring(), Servers: []toolset.Filter{{Name: "one"}, {Name: "two", Scope: "shared"}}})
				require.NoError(t, err)
				defer tools.Close()
				other := &world{T: t, system: w.system, sup: w.sup, Toolset: tools}
				in := newInbox(w.system)
				use := func(of *world, id, name, arguments string) *toolset.Pending {
					in.request(of, &toolset.Use{ID: id, Name: name, Arguments: arguments})
					time.Sleep(time.Second)
					return in.told(of).Pending
				}
				require.Empty(t, w.waiting())
				first := use(w, "3", "one__a", `{"x":"<1>"}`)
				shared := use(w, "2", "two__c", "")
				last := use(w, "1", "one__b", "")
				ofOther := []string{use(other, "2", "two__c", "").ID, use(other, "3", "one__a", "").ID}
				require.Equal(t, []string{"3", shared.ID, "1"}, w.waiting())
				require.Equal(t, ofOther, other.waiting())
				require.NotEqual(t, shared.ID, ofOther[0], "the session is shared, and the id of the model is not")

				all, err := w.Pending(ctx)
				require.NoError(t, err)
				require.JSONEq(t, `{"x":"<1>"}`, string(all[0].Arguments))
				require.True(t, first.Since.Equal(all[0].Since))
				for i, shown := range []*toolset.Pending{first, shared, last} {
					require.Equal(t, [4]string{shown.Digest, shown.Name, shown.Tool, shown.Key.String()}, [4]string{all[i].Digest, all[i].Name, all[i].Tool, all[i].Key.String()})
				}
				require.Equal(t, messages.Key{Server: "two", Scope: "shared"}, shared.Key)

				require.Equal(t, "invalid?", other.again(ctx, shared, allow), "it is of another toolset")
				require.Equal(t, "invalid?", other.cancelled(ctx, shared.ID))
				require.Equal(t, `a{"x":"<1>"}`, strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(w.again(ctx, all[0], allow)))
				require.Equal(t, "refused", w.again(ctx, last, deny))
				require.Equal(t, []string{shared.ID}, w.waiting())
				w.two.define(&mcp.Tool{Name: "c", Description: "Does more."})
				w.changed("two")
				_, err = w.Answer(ctx, shared.ID, shared.Digest, allow)
				anew, waits := errors.AsType[*toolset.Pending](err)
				require.True(t, waits, "%v", err)
				require.Equal(t, []string{shared.ID}, w.waiting(), "its id stays")
				require.Equal(t, "new c", w.again(ctx, anew, allow))
				require.Empty(t, w.waiting())
				require.Equal(t, ofOther, other.waiting())

				require.Equal(t, "will not run", other.cancelled(ctx, ofOther[0]))
				require.Equal(t, ofOther[1:], other.waiting())
				tools.Close()
				_, err = tools.Pending(ctx)
				require.ErrorIs(t, err, messages.CodeClosed)
			})
		})
	}
}

// The toolset is asked as an actor is.
func TestActorListsWhatWaits(t *testing.T) {
	imagine(t, toolset.Config{Policy: deferring()}, func(ctx context.Context, w *world) {
		in := newInbox(w.system)
		list := func(m *toolset.ListPending) *toolset.PendingList {
			in.request(w, m)
			got := in.all()
			require.Len(t, got, 1)
			require.Equal(t, m.ID, got[0].(*toolset.PendingList).ID)
			return got[0].(*toolset.PendingList)
		}
		require.Empty(t, list(&toolset.ListPending{ID: "7"}).Pending)
		p := w.pendingOf(ctx, "one__a", nil)
		all := list(&toolset.ListPending{})
		require.Nil(t, all.Failure)
		require.Len(t, all.Pending, 1)
		require.Equal(t, p.Digest, all.Pending[0].Digest)
		w.Close()
		require.ErrorIs(t, list(&toolset.ListPending{}).Failure, messages.CodeClosed)
	})
}

// A scope fills its bound. Others do not notice, and whatever is answered, here or in another process, makes room.
func TestCallsThatWaitAreBoundedByScope(t *testing.T) {
	for name, store := range stores() {
		t.Run(name, func(t *testing.T) {
			atBank(t, func(ctx context.Context, b *bank) {
				w := b.process(store, toolset.Config{Policy: deferring()})
				full := func() {
					w.Helper()
					_, err := w.Call(ctx, "bank__pay", nil)
					require.ErrorIs(t, err, messages.CodeRefused)
					require.ErrorContains(t, err, "no approval could be obtained")
					f, _ := errors.AsType[*messages.Failure](err)
					require.ErrorContains(t, f.Cause, "wait for an answer already")
					require.False(t, f.MayHaveRun)
					_, waits := errors.AsType[*toolset.Pending](err)
					require.False(t, waits)
				}
				var all []*toolset.Pending
				for range 1024 {
					all = append(all, w.pendingOf(ctx, "bank__pay", nil))
				}
				full()
				tools, err := toolset.New(nil, w.sup, toolset.Config{Scope: "bob", Policy: deferring(), Servers: []toolset.Filter{{Name: "*"}}})
				require.NoError(t, err)
				defer tools.Close()
				bob := &world{T: t, sup: w.sup, Toolset: tools}
				bob.pendingOf(ctx, "bank__pay", nil)

				require.Equal(t, "paid", w.again(ctx, all[0], allow))
				w.pendingOf(ctx, "bank__pay", nil)
				full()
				require.Equal(t, "will not run", w.cancelled(ctx, all[1].ID))
				w.pendingOf(ctx, "bank__pay", nil)
				full()
				if store != nil {
					next := b.process(store, toolset.Config{Policy: deferring()})
					require.Equal(t, "refused", next.again(ctx, all[2], deny))
					time.Sleep(5 * time.Second) // until those that wait are looked at again
					w.pendingOf(ctx, "bank__pay", nil)
					full()
				}
				require.Len(t, w.waiting(), 1024)
			})
		})
	}
}

// The digest that was shown is that of one call only.
func TestAnswerWithTheDigestOfAnotherCallIsRefused(t *testing.T) {
	for name, store := range stores() {
		t.Run(name, func(t *testing.T) {
			atBank(t, func(ctx context.Context, b *bank) {
				w := b.process(store, toolset.Config{Policy: deferring()})
				in := newInbox(w.system)
				in.request(w, &toolset.Use{ID: "call_0", Name: "bank__pay", Arguments: `{"amount":1}`})
				shown := in.told(w).Pending
				in.request(w, &toolset.Use{ID: "call_1", Name: "bank__pay", Arguments: `{"amount":1000000}`})
				other := in.told(w).Pending
				require.Equal(t, "invalid", outcome(w.Answer(ctx, shown.ID, other.Digest, allow)))
				require.Equal(t, "invalid", outcome(w.Answer(ctx, shown.ID, "", allow)))
				require.Equal(t, "invalid", outcome(w.Answer(ctx, shown.ID, other.Digest, deny)))
				require.Empty(t, b.paid())
				require.Equal(t, []string{"call_0", "call_1"}, w.waiting())
				require.Equal(t, "paid", w.again(ctx, shown, allow))
				require.Equal(t, "invalid?", outcome(w.Answer(ctx, shown.ID, other.Digest, allow)))
				require.Len(t, b.paid(), 1)

				in.request(w, &toolset.Use{ID: "call_0", Name: "bank__pay", Arguments: `{"amount":1000000}`}) // a framework counts anew
				next := in.told(w).Pending
				require.NotEqual(t, "call_0", next.ID)
				require.Equal(t, "paid", w.again(ctx, shown, allow), "the answer for the earlier call gets its result")
				require.Len(t, b.paid(), 1)
			})
		})
	}
}

// A store has records of others, or of a later version, and they do not hide those that wait.
func TestPendingLeavesOutWhatItCannotRead(t *testing.T) {
	atBank(t, func(ctx context.Context, b *bank) {
		store := new(resume.Memory)
		w := b.process(store, toolset.Config{Policy: deferring()})
		p, broken := w.pendingOf(ctx, "bank__pay", nil), w.pendingOf(ctx, "bank__pay", nil)
		record, err := store.Load(ctx, callbook.KeyOf("alice", broken.ID))
		require.NoError(t, err)
		record.Call = []byte(`{"state":7}`)
		require.NoError(t, store.Save(ctx, callbook.KeyOf("alice", broken.ID), record))
		require.Equal(t, []string{p.ID}, w.waiting())
		require.Equal(t, "unavailable?", w.again(ctx, broken, allow))
		require.Equal(t, "unavailable?", w.cancelled(ctx, broken.ID))
		require.Empty(t, b.paid())
	})
}
