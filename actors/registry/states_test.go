package registry

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
)

// diagram has the transitions of the diagram of [session.session].
var diagram = map[string]string{
	"start":      "idle queued releasing draining",
	"releasing":  "idle queued draining",
	"idle":       "queued connecting draining",
	"queued":     "idle connecting draining",
	"connecting": "ready abandoning draining",
	"abandoning": "releasing idle queued draining",
	"ready":      "draining",
	"draining":   "closed",
}

// stateOf returns the name of the state that a session is in.
func stateOf(s actor.Actor) string {
	state := reflect.ValueOf(s).Elem().FieldByName("state")
	if state.IsNil() {
		return "start"
	}
	name := runtime.FuncForPC(state.Pointer()).Name()
	return strings.TrimSuffix(name[strings.LastIndexByte(name, '.')+1:], "-fm")
}

func TestSessionTakesTheTransitionsOfItsDiagramAndNoOthers(t *testing.T) {
	taken := map[string]bool{}
	for _, bug := range []string{"none", "*session.callReturned", "*session.dialed", "*contract.Drain"} {
		before := map[actor.Actor]string{}
		panics := plant(bug, 0)
		scenario(t, func(c actor.Context) {
			s := c.Actor()
			from, to := before[s], stateOf(s)
			if before[s] = to; from != "" && from != to && fmt.Sprintf("%T", s) == "*session.session" {
				require.Contains(t, strings.Fields(diagram[from]), to, "from %s, by %T", from, c.Message())
				taken[from+" "+to] = true
			}
			panics(c)
		})
	}
	for _, way := range []string{"start idle", "idle queued", "queued connecting", "connecting ready", "ready draining", "start releasing", "draining closed"} {
		require.True(t, taken[way], fmt.Sprint(way, " of ", taken))
	}
}
