package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// The same calls on a bare session, a map with a mutex, a pool, and a supervisor.
func Example_comingFrom() {
	ctx := context.Background()
	greeter := newGreeter()
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return greeter }, nil))
	defer server.Close()
	params := &mcp.CallToolParams{Name: "greet", Arguments: map[string]any{"name": "Ada"}}

	bareSession(ctx, server.URL, params)
	sessions := &Sessions{url: server.URL, open: map[string]*mcp.ClientSession{}}
	defer sessions.Close()
	result, err := sessions.CallTool(ctx, "conversation-1", params)
	show(result, err)
	fromAPool(ctx, server.URL, params)
	supervised(ctx, server.URL, params)
	// Output:
	// Hello, Ada!
	// Hello, Ada!
	// Hello, Ada!
	// Hello, Ada!
	// Hello, Ada!
}

func bareSession(ctx context.Context, url string, params *mcp.CallToolParams) {
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(ctx, params)
	show(result, err)
}

// Sessions keeps one MCP session for each conversation.
type Sessions struct {
	url  string
	mu   sync.Mutex
	open map[string]*mcp.ClientSession
}

func (s *Sessions) CallTool(ctx context.Context, conversation string, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	session, err := s.get(ctx, conversation)
	if err != nil {
		return nil, err
	}
	result, err := session.CallTool(ctx, params)
	if errors.Is(err, mcp.ErrSessionMissing) { // which not every expired session returns
		s.drop(conversation, session)
		if session, err = s.get(ctx, conversation); err == nil {
			result, err = session.CallTool(ctx, params)
		}
	}
	return result, err
}

func (s *Sessions) get(ctx context.Context, conversation string) (*mcp.ClientSession, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session := s.open[conversation]; session != nil {
		return session, nil
	}
	session, err := connect(ctx, s.url) // every other conversation waits for this
	if err == nil {
		s.open[conversation] = session
	}
	return session, err
}

// drop takes a session out of the map, unless another call has replaced it already.
func (s *Sessions) drop(conversation string, session *mcp.ClientSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[conversation] == session {
		delete(s.open, conversation)
		session.Close()
	}
}

// Close closes all sessions.
func (s *Sessions) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.open {
		session.Close()
	}
}

func fromAPool(ctx context.Context, url string, params *mcp.CallToolParams) {
	const size = 4
	pool := make(chan *mcp.ClientSession, size)
	for range size {
		session, err := connect(ctx, url)
		if err != nil {
			log.Fatal(err)
		}
		defer session.Close()
		pool <- session
	}

	session := <-pool
	result, err := session.CallTool(ctx, params)
	pool <- session
	show(result, err)
}

func supervised(ctx context.Context, url string, params *mcp.CallToolParams) {
	system := newSystem()
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers: []mcpbridge.Server{{Name: "greeter", URL: url}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	reply, err := sup.Client().CallTool(ctx, "greeter", "conversation-1", params)
	printReply(reply, err)

	const size = 4
	worker := 17
	reply, err = sup.Client().CallTool(ctx, "greeter", fmt.Sprint("worker-", worker%size), params)
	printReply(reply, err)
}

func printReply(reply *messages.ToolResult, err error) {
	if err != nil {
		log.Fatal(err)
	}
	show(reply.Result, nil)
}

func show(result *mcp.CallToolResult, err error) {
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Content[0].(*mcp.TextContent).Text)
}

// connect opens a session with the SDK alone.
func connect(ctx context.Context, url string) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	return client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url}, nil)
}
