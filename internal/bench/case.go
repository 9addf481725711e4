package bench

import (
	"context"
	"errors"
	"path"
	"strings"
)

// The names of contenders.
const (
	bareName     = "bare"      // a session of the SDK; over HTTP with enough idle connections
	untunedName  = "untuned"   // the same with the SDK's default HTTP client
	perCallName  = "per-call"  // a session of the SDK for each call
	mutexMapName = "mutex-map" // see mutexMap
	messageName  = "message"   // a message to the supervisor, answered by a message
	clientName   = "client"    // supervisor.Client
)

// scenario is a kind of work to measure.
type scenario struct {
	name string
	// about says what one operation is.
	about string
	// baseline is the contender that the others are compared with.
	baseline string
	// unit is that of the values that are compared.
	unit  string
	cases func(*setup) []*benchCase
}

// scenarios are in the order of the report.
var scenarios = []scenario{
	{"warm", "a call of a trivial tool on an open session", bareName, nsPerOp, (*setup).warm},
	{"path", "a call on a session that answers at once, without MCP", mutexMapName, nsPerOp, (*setup).path},
	{"first", "opening a session, and its first call", bareName, nsPerOp, (*setup).first},
	{"recovery", "the time from the answer that the session expired to the result of the call; `bare`: initialize and a call", bareName, nsPerOp, (*setup).recovery},
	{"herd", "many callers find one session expired: the time until the last one has its result; `bare`: initialize and the same calls", bareName, nsPerOp, (*setup).herd},
	{"outage", "the time from the return of a server to the last result, with a waiting caller for each key", mutexMapName, nsPerOp, (*setup).outage},
	{"churn", "a call of each of many keys in turn, which evicts another key", perCallName, nsPerOp, (*setup).churn},
	{"registry", "a call of one of 10, 1,000 or 100,000 keys in turn, whose sessions answer at once, without MCP", messageName + "-10", nsPerOp, (*setup).registry},
	{"idle", "memory (heap and stacks) of an idle session in the client's process", bareName, bytesPerSession, (*setup).idle},
	{"large", "a call whose result is a text of 1 MB or an image of 5 MB; bodies/op: what the client allocates, divided by the size of the result", bareName, nsPerOp, (*setup).large},
}

// scenarioOf returns the scenario of the case with a name.
func scenarioOf(name string) (scenario, bool) {
	first, _, _ := strings.Cut(name, "/")
	for _, s := range scenarios {
		if s.name == first {
			return s, true
		}
	}
	return scenario{}, false
}

// benchCase is work of a scenario with its parameters, and the ways to do it.
type benchCase struct {
	scenario
	// name is the scenario with its parameters, such as warm/transport=memory/callers=1.
	name string
	// callers is the least number of operations in a round; 0 is 1.
	callers int
	// ops is the number of operations in a round; 0 is as many as fit the round time.
	ops int
	// rounds limits the number of rounds; 0 is no limit.
	rounds     int
	contenders []contender
}

// contender is one way to do the work of a case.
type contender struct {
	name  string
	start starter
}

// starter makes a contender ready to be measured.
type starter func(ctx context.Context) (*running, error)

// running is a contender that is ready.
type running struct {
	// round performs n operations and measures them.
	round func(ctx context.Context, n int) (sample, error)
	close func() error
}

// errNotInstalled is why a contender is left out.
var errNotInstalled = errors.New("not installed")

// matchesAny reports whether one of the patterns, as of [path.Match], matches a name or
// as many of its first parts as the pattern has. No pattern matches every name.
func matchesAny(patterns []string, name string) bool {
	parts := strings.Split(name, "/")
	for _, pattern := range patterns {
		first := parts[:min(len(parts), 1+strings.Count(pattern, "/"))]
		if ok, err := path.Match(pattern, strings.Join(first, "/")); ok && err == nil {
			return true
		}
	}
	return len(patterns) == 0
}
