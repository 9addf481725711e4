package faults_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/scheduler"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// collector is an agent that is an actor. It buys each book of a list once. If it does not
// know whether it has bought a book, it looks at its orders.
type collector struct {
	sessions *actor.PID
	customer string
	books    []string // those that are left, the current one first
	careless bool     // it does not look at its orders
	done     chan<- string
}

// use is a message to itself: use a tool.
type use struct{ tool string }

func (a *collector) Receive(c actor.Context) {
	switch msg := c.Message().(type) {
	case *actor.Started:
		c.Send(c.Self(), &use{"buy"})
	case *use:
		header := messages.To("shop", a.customer)
		header.ID = msg.tool
		arguments := map[string]any{"title": a.books[0]}
		c.Request(a.sessions, &messages.CallTool{Header: header, Params: &mcp.CallToolParams{Name: msg.tool, Arguments: arguments}})
	case *messages.ToolResult:
		if msg.Result.IsError {
			a.later(c, msg.ID)
			return
		}
		a.onAnswer(c, msg.Result.Content[0].(*mcp.TextContent).Text)
	case *messages.Failure:
		if msg.MayHaveRun && !a.careless {
			a.later(c, "orders")
		} else {
			a.later(c, msg.ID)
		}
	}
}

func (a *collector) onAnswer(c actor.Context, answer string) {
	if answer == "not bought" {
		a.later(c, "buy")
		return
	}
	if a.books = a.books[1:]; len(a.books) == 0 {
		a.done <- a.customer
		return
	}
	c.Send(c.Self(), &use{"buy"})
}

// later uses a tool in a second.
func (a *collector) later(c actor.Context, tool string) {
	scheduler.NewTimerScheduler(c).SendOnce(time.Second, c.Self(), &use{tool})
}

// bookshop records what its customers buy.
type bookshop struct {
	mu     sync.Mutex
	orders []string
}

func (b *bookshop) buy(_ context.Context, run *faults.Run) (any, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.orders = append(b.orders, fmt.Sprint(run.Key.Scope, " ", run.Arguments["title"]))
	return "bought", nil
}

func (b *bookshop) find(_ context.Context, run *faults.Run) (any, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.Contains(b.orders, fmt.Sprint(run.Key.Scope, " ", run.Arguments["title"])) {
		return "bought", nil
	}
	return "not bought", nil
}

// collect runs three collectors under the faults of a seed, for a minute. Then the shop is
// healthy, and they must be done soon. It returns the orders of the shop.
func collect(t *testing.T, seed uint64, careless bool) []string {
	shop, books := faults.NewScript(t, "shop"), &bookshop{}
	shop.Tool("buy").Does(books.buy)
	shop.Tool("orders").Does(books.find)
	stop := shop.FailsAtRandom(faults.Random{Seed: seed})
	time.AfterFunc(time.Minute, stop)
	system := actor.NewActorSystem(supervisor.WithSystemLogger(zerolog.Nop()))
	sup := shop.Supervise(system, supervisor.Config{})

	customers := []string{"alice", "bob", "carol"}
	done := make(chan string, len(customers))
	for _, customer := range customers {
		titles := []string{"Dune", "Emma", "Ulysses"}
		agent := &collector{sessions: sup.PID(), customer: customer, books: titles, careless: careless, done: done}
		system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return agent }))
	}
	limit := time.After(5 * time.Minute)
	for range customers {
		select {
		case <-done:
		case <-limit:
			t.Fatal("a customer waits for ever")
		}
	}
	return slices.Sorted(slices.Values(books.orders))
}

// Each seed is a test of its own. To repeat one: go test -run TestCollectorsBuyEachBookOnce/17.
func TestCollectorsBuyEachBookOnce(t *testing.T) {
	for seed := range seeds(200, 20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				orders := collect(t, seed, false)
				require.Len(t, slices.Compact(slices.Clone(orders)), 9)
				require.Len(t, orders, 9, strings.Join(orders, "\n"))
			})
		})
	}
}

// The seeds find an agent that buys again after each failure.
func TestCarelessCollectorsAreFound(t *testing.T) {
	found := 0
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			if orders := collect(t, seed, true); len(orders) > 9 {
				found++
			}
		})
	}
	require.Greater(t, found, 5)
}
