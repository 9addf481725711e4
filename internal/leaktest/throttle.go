// Package leaktest says which goroutines a test may leave.
package leaktest

import "go.uber.org/goleak"

// Throttle ignores a goroutine of Proto.Actor that runs for a second after a dead letter. Its function has another name since
// Go 1.27.
var Throttle = []goleak.Option{
	goleak.IgnoreTopFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"),
	goleak.IgnoreTopFunction("github.com/asynkron/protoactor-go/actor.NewThrottle.func1.1"),
}
