package mcpbridge_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// Each scope has the token of its user, which has expired and is renewed within the
// dial.
func ExampleBearer() {
	server := newMail()
	defer server.Close()
	vault := &memory{tokens: map[string]int{"alice": 1, "bob": 1}}
	auth := mcpbridge.Bearer(func(ctx context.Context, key messages.Key, refused string) (string, error) {
		if refused != "" { // the server has refused this token
			return vault.Renew(ctx, key.Scope)
		}
		return vault.Token(ctx, key.Scope)
	})
	sup, err := supervisor.Start(nil, supervisor.Config{Servers: []supervisor.Server{{Name: "mail", URL: server.URL, Auth: auth}}})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(context.Background())
	for _, user := range []string{"alice", "bob"} {
		result, err := sup.Client().CallTool(context.Background(), "mail", user, &mcp.CallToolParams{Name: "whoami"})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.Result.Content[0].(*mcp.TextContent).Text)
	}
	// Output:
	// Bearer alice-2
	// Bearer bob-2
}

// All requests have the same token.
func ExampleServer_headers() {
	server := mcpbridge.Server{
		Name: "search", URL: "https://search.example.com/mcp",
		Headers: map[string]string{"Authorization": "Bearer " + os.Getenv("SEARCH_TOKEN")},
	}
	fmt.Println(server.Validate())
	// Output: <nil>
}

// A server that is reached without encryption, in a network where nobody else is.
func ExampleServer_insecureCredentials() {
	server := mcpbridge.Server{
		Name: "search", URL: "http://search.internal:8080/mcp",
		Headers:             map[string]string{"Authorization": "Bearer " + os.Getenv("SEARCH_TOKEN")},
		InsecureCredentials: true,
	}
	fmt.Println(server.Validate())
	// Output: <nil>
}

// A service that has one login for all its scopes.
func ExampleOAuth() {
	handler, err := extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{
		Credentials: &oauthex.ClientCredentials{
			ClientID:         "my-service",
			ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: os.Getenv("CLIENT_SECRET")},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	server := mcpbridge.Server{Name: "search", URL: "https://search.example.com/mcp", Auth: mcpbridge.OAuth(handler)}
	_ = server
}

// login is the login of a user on one server.
type login struct {
	*mcpbridge.OAuthCredentials
	user string
}

// Identity names the owner of a session, also after a restart.
func (l login) Identity() string { return l.user }

// Each scope has a login of its own on each server.
func ExampleOAuth_perScope() {
	var mu sync.Mutex
	logins := map[messages.Key]login{}
	perUser := mcpbridge.AuthenticatorFunc(func(_ context.Context, key messages.Key) (mcpbridge.Credentials, error) {
		mu.Lock()
		defer mu.Unlock()
		if known, ok := logins[key]; ok {
			return known, nil
		}
		handler, err := newLogin(key.Server, key.Scope)
		if err != nil {
			return nil, err
		}
		logins[key] = login{mcpbridge.OAuth(handler), key.Scope}
		return logins[key], nil
	})
	server := mcpbridge.Server{Name: "mail", URL: "https://mail.example.com/mcp", Auth: perUser}
	_ = server
}

// newLogin makes a handler that has the user log in, in a browser.
func newLogin(server, user string) (auth.OAuthHandler, error) {
	return auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		PreregisteredClient: &oauthex.ClientCredentials{ClientID: "my-service"},
		RedirectURL:         "https://my-service.example.com/logged-in",
		AuthorizationCodeFetcher: func(context.Context, *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			return nil, fmt.Errorf("%s is not here to log in to %s", user, server)
		},
	})
}

// memory is a vault that counts.
type memory struct {
	mu     sync.Mutex
	tokens map[string]int
}

func (m *memory) Token(_ context.Context, user string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("%s-%d", user, m.tokens[user]), nil
}

func (m *memory) Renew(ctx context.Context, user string) (string, error) {
	m.mu.Lock()
	m.tokens[user]++
	m.mu.Unlock()
	return m.Token(ctx, user)
}

// newMail is a server that takes the second token of each user.
func newMail() *httptest.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "mail", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "whoami"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		text := req.Extra.Header.Get("Authorization")
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Authorization") {
		case "Bearer alice-2", "Bearer bob-2":
			handler.ServeHTTP(w, r)
		default:
			http.Error(w, "the token has expired", http.StatusUnauthorized)
		}
	}))
}

// The processes that a conversation starts end with it.
func ExampleHandle() {
	server := mcpbridge.Server{
		Name: "commander", Command: "npx", Args: []string{"-y", "@wonderwhy-er/desktop-commander@0.2.52"},
		Handles: []mcpbridge.Handle{{
			Mint: "start_process", Pattern: `^Process started with PID (\d+)`, Release: "force_terminate", Argument: "pid",
			List: "list_sessions", Listed: `PID: (\d+)`, Gone: "No active session found",
		}},
	}
	fmt.Println(server.Validate())
	// Output: <nil>
}
