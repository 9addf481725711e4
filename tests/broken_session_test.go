package tests

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/dialer"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// brokenSession is a session actor with one defect, or with none.
type brokenSession struct {
	w       *harness
	defect  string
	conns   []dial.Conn
	stopped chan struct{} // closed when the actor has stopped
}

// Receive dials, runs a call, answers it and closes the connection: once each, unless the
// defect says otherwise.
func (s *brokenSession) Receive(c actor.Context) {
	op, ok := c.Message().(*messages.CallTool)
	if _, is := c.Message().(*actor.Stopped); is {
		close(s.stopped)
	}
	if !ok {
		return
	}
	ctx := context.Background()
	times := func(wrong string, more int) int {
		if s.defect == wrong {
			return more
		}
		return 1
	}
	for range times("dials twice", 2) {
		s.dial(op, s.w.dials)
	}
	var result messages.Result
	for range times("makes up a result", 0) * times("runs twice", 2) * times("replays what it must not", 2) * times("runs three times", 3) {
		result, _ = s.conns[0].Do(ctx, op)
	}
	if s.defect == "makes up a result" {
		result = textResult("1")
	}
	receipt := result.GetReceipt()
	receipt.ID, receipt.Replayed = op.ID, s.defect == "runs three times" || s.defect == "replays what it must not"
	for range times("does not answer", 0) * times("answers twice", 2) {
		if s.defect == "denies that it ran" {
			c.Respond(&messages.Failure{ID: op.ID})
			continue
		}
		c.Respond(result)
	}
	for range times("does not close", 0) {
		s.conns[0].Close(ctx)
	}
	switch s.defect {
	case "sends to nobody":
		c.Send(actor.NewPID(c.Self().Address, "nobody"), &messages.Inspect{})
	case "panics":
		panic("a bug")
	case "opens two sessions at the server":
		for range 2 {
			again := *op
			again.Params = call("a", "count").Params
			s.dial(op, s.w.dials.Dialer).Do(ctx, &again)
		}
	}
}

func (s *brokenSession) dial(op *messages.CallTool, with dial.Dialer) dial.Conn {
	conn, err := with.Dial(context.Background(), dial.Request{Key: op.Key, Down: func(*mcpbridge.Error) {}})
	require.NoError(s.w.t, err)
	s.conns = append(s.conns, conn)
	return conn
}

// The verifier reports each defect, and nothing for a session without a defect.
func TestVerifierCatchesBrokenSessions(t *testing.T) {
	for wrong, want := range map[string]string{
		"":                                 "",
		"does not answer":                  "0 replies to *messages.CallTool",
		"answers twice":                    "2 replies to *messages.CallTool",
		"dials twice":                      "s/a had 2 transports at once",
		"does not close":                   "s/a: 1 transports were left open",
		"runs twice":                       "ran 2 times, replayed: false",
		"replays what it must not":         "ran 2 times, replayed: true, may run twice: false",
		"runs three times":                 "ran 3 times, replayed: true",
		"makes up a result":                "has a result, and never ran",
		"denies that it ran":               "is said not to have run, and ran",
		"sends to nobody":                  "dead letter *messages.Inspect",
		"panics":                           "supervision event that is no fault: a bug",
		"opens two sessions at the server": `at the server: scope "a" had two sessions at once`,
	} {
		t.Run(wrong, func(t *testing.T) {
			e := serve(t, faults.NewTools())
			defer e.close()
			bridge := dialer.New(dial.BridgeConfig{Servers: []mcpbridge.Server{{Name: "s", URL: e.URL()}}})
			defer bridge.Close()
			h := newHarness(t)
			h.dials.Dialer, h.executed, h.overlaps = bridge, e.Executions, e.Overlaps
			session := &brokenSession{w: h, defect: wrong, stopped: make(chan struct{})}
			h.pid = h.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return session }))
			h.send(call("a", "count"))
			h.system.Root.Poison(h.pid)
			<-session.stopped
			err := h.violations()
			for _, conn := range session.conns {
				conn.Close(context.Background())
			}
			if wrong == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// The verifier reports goroutines, files and processes that a scenario leaves.
func TestVerifierCatchesWhatIsLeft(t *testing.T) {
	for left, leave := range map[string]func() (remove func()){
		"": func() func() { return func() {} },
		"goroutine": func() func() {
			stay := make(chan struct{})
			go func() { <-stay }()
			return func() { close(stay) }
		},
		"files are open": func() func() {
			f, err := os.Open(os.DevNull)
			require.NoError(t, err)
			return func() { f.Close() }
		},
		"processes": func() func() {
			child := exec.Command("sleep", "60")
			require.NoError(t, child.Start())
			return func() {
				require.NoError(t, child.Process.Kill())
				require.Error(t, child.Wait())
			}
		},
	} {
		t.Run(left, func(t *testing.T) {
			before := resourcesInUse()
			remove := leave()
			err := before.leaks(50 * time.Millisecond)
			remove()
			if left == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, left)
			}
			require.NoError(t, before.leaks(2*time.Second))
		})
	}
}
