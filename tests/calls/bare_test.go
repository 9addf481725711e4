//go:build linux

package calls

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bare is the client that many programs have: sessions and results in maps behind a mutex, and one retry on a new session. The maps
// end with the process. A call that fails is said to have failed.
type bare struct {
	url string

	mu       sync.Mutex
	sessions map[string]*mcp.ClientSession
	results  map[string]string
}

// runBare is a program with this client, which makes the calls that it reads. An approval is what another part of it
// has in memory.
func runBare(r role) error {
	b := &bare{url: "http://" + r.Addr, sessions: map[string]*mcp.ClientSession{}, results: map[string]string{}}
	return answerAsks(b.tell)
}

// tell does what is asked, and returns what came of it.
func (b *bare) tell(a ask) told {
	ctx, cancel := context.WithTimeout(context.Background(), 2*callTimeout)
	defer cancel()
	b.mu.Lock()
	text, known := b.results[a.ID]
	b.mu.Unlock()
	if known {
		return told{Text: text}
	}
	scope := fmt.Sprint("agent-", a.N%4)
	text, err := b.pay(ctx, scope, a.N)
	if err != nil {
		text, err = b.pay(ctx, scope, a.N) // on a new session
	}
	if err != nil {
		return told{Code: "error", Detail: err.Error()}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.results[a.ID] = text
	return told{Text: text}
}

// pay calls the tool on the session of a scope. A session with an error is dropped.
func (b *bare) pay(ctx context.Context, scope string, n int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	session, err := b.session(ctx, scope)
	if err != nil {
		return "", err
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: payTool, Arguments: payment{n}})
	if err != nil {
		b.drop(scope, session)
		return "", err
	}
	if result.IsError {
		return "", errors.New(textOf(result))
	}
	return textOf(result), nil
}

// session returns the session of a scope, and opens it if there is none.
func (b *bare) session(ctx context.Context, scope string) (*mcp.ClientSession, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if session := b.sessions[scope]; session != nil {
		return session, nil
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "bare", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: b.url, MaxRetries: -1}, nil)
	if err == nil {
		b.sessions[scope] = session
	}
	return session, err
}

// drop drops a session, unless there is a new one.
func (b *bare) drop(scope string, session *mcp.ClientSession) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sessions[scope] == session {
		delete(b.sessions, scope)
		go session.Close()
	}
}
