package callbook

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/results"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/tests/oddtest"
)

// follows are the states that may follow a state. From Sent and Asking a call becomes Allowed only if it has certainly not run, or
// Failed if somebody was asked about it. A result that is no longer kept is removed.
var follows = map[State][]State{
	None:     {Proposed, Sent},
	Proposed: {Proposed, Allowed, Failed},
	Allowed:  {Sent, Failed},
	Sent:     {Allowed, Failed, Asked, Task, Unknown, Asking, Done},
	Asked:    {Sent},
	Task:     {Unknown, Done},
	Unknown:  {Asking, Done},
	Asking:   {Asking, Allowed, Unknown, Done},
	Done:     {Done},
	Failed:   {},
}

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// called returns the message that calls a tool.
func called(tool string, arguments any) *messages.CallTool {
	return &messages.CallTool{
		Header: messages.Header{ID: "a", Key: messages.Key{Server: "s", Scope: "c"}},
		Params: &mcp.CallToolParams{Name: tool, Arguments: arguments}, Durable: true,
	}
}

// Each row has the steps of whoever asks for a call: without a function that finds out what became of it, and with one.
func TestTheStateOfACallDecidesWhatWhoeverAsksForItDoes(t *testing.T) {
	type steps [2]Step
	type row struct{ mine, mineEnded, other, otherEnded steps } // who has sent it or finds out, and whether that is over
	always := func(s Step) row { return row{steps{s, s}, steps{s, s}, steps{s, s}, steps{s, s}} }
	open := row{mine: steps{Tell, Learn}, mineEnded: steps{Tell, Learn}, other: steps{Wait, Wait}, otherEnded: steps{Tell, Learn}}
	lost := row{mine: steps{Tell, Learn}, mineEnded: steps{Tell, Learn}, other: steps{Tell, Learn}, otherEnded: steps{Tell, Learn}}
	rows := map[State]row{
		None: always(Run), Proposed: always(Refuse), Allowed: always(Run), Sent: open, Asked: always(Run), Task: always(Run),
		Unknown: lost, Asking: open, Done: always(Tell), Failed: always(Tell),
	}
	require.Len(t, rows, len(follows))
	for state, row := range rows {
		for when, want := range map[string]steps{"mine": row.mine, "mine ended": row.mineEnded, "other": row.other, "other ended": row.otherEnded} {
			r := Record{State: state, Call: "call", By: "me x", Ends: now.Add(time.Second)}
			if when[0] == 'o' {
				r.By = "mean x"
			}
			if when == "mine ended" || when == "other ended" {
				r.Ends = now // it has ended at this time
			}
			for i, resolves := range []bool{false, true} {
				name := fmt.Sprintf("%q, %s, resolves: %v", state, when, resolves)
				require.Equal(t, want[i], r.Next("call", "me", resolves, now), name)
				refused := Refuse
				if state == None {
					refused = Run
				}
				require.Equal(t, refused, r.Next("other", "me", resolves, now), name)
				r.Resolved = true // it was asked, and nobody knows
				if state == Unknown {
					require.Equal(t, Tell, r.Next("call", "me", resolves, now), name)
				}
				r.Resolved = false
			}
		}
	}
}

func TestACallIsOverOnceNothingFollows(t *testing.T) {
	for state, next := range follows {
		rest := slices.DeleteFunc(slices.Clone(next), func(s State) bool { return s == state })
		require.Equal(t, len(rest) == 0, Record{State: state}.IsOver(), state)
	}
	require.True(t, Record{State: Unknown, Resolved: true}.IsOver())
}

// full is a record with all that a record may have.
var full = Record{
	State: Done, Call: "call", Token: "token", Proposal: json.RawMessage(`{"a":9007199254740993,"b":"<&>"}`), By: "me x", Ends: now, Task: "task",
	Result: json.RawMessage(`{"content":[]}`), Failure: &messages.Failure{Code: messages.CodeLost, Detail: "gone"}, Resolved: true,
	ResultUntil: now.Add(time.Nanosecond), Until: now.Add(time.Hour),
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	store, key := new(resume.Memory), KeyOf("scope", "id")
	for _, r := range []Record{full, {State: Sent, Call: "call"}, {State: Proposed, Call: "call", Proposal: json.RawMessage(`[]`), Until: now}} {
		written, err := r.encode(7)
		require.NoError(t, err)
		require.EqualValues(t, 7, written.Version)
		require.NoError(t, store.Save(t.Context(), key, written))
		kept, err := store.Load(t.Context(), key)
		require.NoError(t, err)
		read, version, err := decode(kept, now)
		require.NoError(t, err)
		require.EqualValues(t, 7, version)
		again, err := read.encode(7)
		require.NoError(t, err)
		require.Equal(t, written.Call, again.Call) // an entry recognises what it has written
		require.Equal(t, r.State, read.State)
		require.Equal(t, r.Failure, read.Failure)
		require.True(t, r.Until.Equal(read.Until))
	}
}

func TestWhatIsNoRecordOfACallIsNotRead(t *testing.T) {
	for _, text := range []string{"", "{", "null", "7", "{}", `{"state":7}`, `{"state":""}`} {
		_, version, err := decode(&mcpbridge.Record{Call: json.RawMessage(text), Version: 3}, now)
		require.ErrorIs(t, err, errUnreadable, text)
		require.EqualValues(t, 3, version, text)
	}
	r, version, err := decode(nil, now)
	require.NoError(t, err)
	require.Zero(t, r)
	require.Zero(t, version)
}

func TestAnOutdatedRecordIsNone(t *testing.T) {
	kept, err := full.encode(7)
	require.NoError(t, err)
	r, _, err := decode(kept, full.Until)
	require.NoError(t, err)
	require.Equal(t, Done, r.State)
	r, version, err := decode(kept, full.Until.Add(1))
	require.NoError(t, err)
	require.Zero(t, r)
	require.EqualValues(t, 7, version) // which the next record replaces
	require.False(t, Record{State: Done}.isOutdated(now))
}

func TestACallIsKeptForADayAfterItsEndAndNotShorterThanBefore(t *testing.T) {
	require.Equal(t, now.Add(keptAfter), Record{}.Send("me", now).Until)
	require.Equal(t, now.Add(keptAfter), Record{Until: now}.Send("me", now).Until)
	late := now.Add(2 * keptAfter)
	require.Equal(t, late, Record{Until: late}.Send("me", now).Until)
	require.Equal(t, late, Record{Until: late}.Finish(nil, now).Until)
	require.Equal(t, late, Record{Until: now}.Finish(nil, late).Until)
}

func TestAResultIsKeptForItsTime(t *testing.T) {
	r, had := full.withoutSecrets(full.ResultUntil)
	require.False(t, had)
	require.NotNil(t, r.Result)
	r, had = full.withoutSecrets(full.ResultUntil.Add(1))
	require.True(t, had)
	require.Nil(t, r.Result)
	_, had = r.withoutSecrets(full.ResultUntil.Add(1))
	require.False(t, had)
}

// The result is the one that the server has sent, also if it is odd.
func TestAKeptResultIsTheOneThatCame(t *testing.T) {
	b := New(Config{KeepResults: time.Hour, MaxResult: 1 << 20})
	defer b.Close()
	texts := []string{
		`{"content":[{"type":"text","text":"\u0000\u2028<&>\ud83d\ude00"}],"structuredContent":{"n":9007199254740993,"f":1e400,"deep":[{"m":-9007199254740995}]}}`,
		`{"content":[],"_meta":{"n":18446744073709551615},"isError":true}`, `{"content":null}`, `{"structuredContent":null}`, `{"structuredContent":12345678901234567890}`,
	}
	for _, odd := range oddtest.All("tools/call") {
		texts = append(texts, odd.Result)
	}
	read := 0
	for _, text := range texts {
		came, _, err := results.Decode("tools/call", []byte(text))
		if err != nil {
			continue
		}
		read++
		raw, until := b.kept(&messages.ToolResult{Result: came.(*mcp.CallToolResult)})
		require.NotNil(t, raw, text)
		written, err := Record{State: Sent}.Finish(raw, until).encode(1)
		require.NoError(t, err)
		r, _, err := decode(written, now)
		require.NoError(t, err)
		result, err := r.tell(called("t", nil))
		require.NoError(t, err, text)
		told := result.(*messages.ToolResult).Result
		again, err := json.Marshal(told)
		require.NoError(t, err)
		require.Equal(t, string(raw), string(again), text)
		require.Equal(t, came.(*mcp.CallToolResult).StructuredContent, told.StructuredContent, text)
	}
	require.Greater(t, read, len(texts)/2)
}

func TestAResultThatIsTooLongIsNotKept(t *testing.T) {
	result := &messages.ToolResult{Result: &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "some text"}}}}
	text, err := json.Marshal(result.Result)
	require.NoError(t, err)
	for _, c := range []struct {
		keep   time.Duration
		most   int
		result *messages.ToolResult
		is     bool
	}{
		{time.Hour, len(text), result, true},
		{time.Hour, len(text) - 1, result, false},
		{0, len(text), result, false},
		{time.Hour, len(text), nil, false},
	} {
		b := New(Config{KeepResults: c.keep, MaxResult: c.most})
		raw, until := b.kept(c.result)
		require.Equal(t, c.is, raw != nil)
		require.Equal(t, c.is, !until.IsZero())
		b.Close()
	}
}

// What is told of a call that may have run says so, and why its answer is not known.
func TestWhatIsToldOfACall(t *testing.T) {
	lost := &messages.Failure{Code: messages.CodeDeadline, Detail: "too late"}
	for _, c := range []struct {
		r      Record
		code   messages.Code
		detail string
		may    bool
	}{
		{Record{State: Failed, Failure: &messages.Failure{Code: messages.CodeRefused, Detail: "no"}}, messages.CodeRefused, "no", false},
		{Record{State: Failed}, messages.CodeRefused, "given up", false},
		{Record{State: Done}, messages.CodeLost, "no longer kept", true},
		{Record{State: Done, Result: json.RawMessage(`{"content":[]}`), ResultUntil: time.Now().Add(-1)}, messages.CodeLost, "no longer kept", true},
		{Record{State: Done, Result: json.RawMessage(`{`), ResultUntil: time.Now().Add(time.Hour)}, messages.CodeLost, "cannot be read", true},
		{Record{State: Unknown, Failure: lost}, messages.CodeLost, "too late", true},
		{Record{State: Unknown}, messages.CodeLost, "is not known", true},
		{Record{State: Sent, Failure: lost}, messages.CodeLost, "is not known", true},
		{Record{State: Asking, Failure: lost}, messages.CodeLost, "is not known", true},
	} {
		_, err := c.r.tell(called("t", nil))
		f, is := errors.AsType[*messages.Failure](err)
		require.True(t, is)
		require.Equal(t, c.code, f.Code)
		require.Contains(t, f.Detail, c.detail)
		require.Equal(t, c.may, f.MayHaveRun)
		require.Equal(t, "a", f.ID)
	}
}

// A failure that was kept is about another message: whoever asks again gets it as that of its own.
func TestAFailureThatWasKeptIsReaddressed(t *testing.T) {
	kept := &messages.Failure{
		ID: "other", Op: "op", Key: messages.Key{Server: "o"}, Code: messages.CodeUnavailable, Detail: "down", Remedy: "start it", MayHaveRun: true,
		Generation: 7, Attempt: 3, Replayed: true, RetryAfter: time.Hour,
	}
	op := called("t", nil)
	f := readdressed(op, kept)
	require.Equal(t, &messages.Failure{
		ID: op.ID, Op: op.Method(), Target: "t", Key: op.Key, Code: messages.CodeUnavailable, Detail: "down", Remedy: "start it",
	}, f)
}

// Only what permits something new is no outcome.
func TestTheOutcomesAreTheStatesOfACallThatIsNotSentForThem(t *testing.T) {
	outcomes := map[State]bool{Allowed: true, Asked: true, Task: true, Unknown: true, Done: true, Failed: true}
	for state := range follows {
		kept, err := Record{State: state, Until: now}.encode(1)
		require.NoError(t, err)
		require.Equal(t, outcomes[state], IsOutcome(kept), state)
	}
	require.False(t, IsOutcome(nil))
	require.False(t, IsOutcome(&mcpbridge.Record{}))
	require.False(t, IsOutcome(&mcpbridge.Record{Call: json.RawMessage(`{`)}))
}

func TestTheDigestOfACallIsOfItsServerItsToolAndItsArguments(t *testing.T) {
	one := called("t", json.RawMessage(`{"a": 9007199254740993}`))
	same := called("t", json.RawMessage(`{"a":9007199254740993}`))
	same.Key.Scope, same.ID, same.Durable = "other", "other", false
	require.Equal(t, DigestOf(one), DigestOf(same))
	server := called("t", one.Params.Arguments)
	server.Key.Server = "other"
	for _, other := range []*messages.CallTool{
		server, called("u", one.Params.Arguments), called("t", nil), called("t", json.RawMessage(`{}`)), called("t", json.RawMessage(`{"a":9007199254740992}`)),
	} {
		require.NotEqual(t, DigestOf(one), DigestOf(other))
	}
}

func TestAKeyIsThatOfAScopeAndAnID(t *testing.T) {
	require.Equal(t, KeyOf("", "id"), KeyOf(messages.DefaultScope, "id"))
	require.NotEqual(t, KeyOf("a", "b c"), KeyOf("a b", "c"))
	require.NotEqual(t, KeyOf(`a" "b`, "c"), KeyOf("a", `b" "c`))
}
