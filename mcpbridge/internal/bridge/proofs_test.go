package bridge

import (
	"context"
	"crypto"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/proof"
	"github.com/mcpactor/mcpactor/internal/proof/prooftest"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// boundSource is a source of tokens that are bound to a key.
type boundSource struct {
	oauth2.TokenSource
	key crypto.Signer
}

func (b boundSource) BoundToken() (*oauth2.Token, crypto.Signer, error) {
	token, err := b.Token()
	return token, b.key, err
}

// provedServer is an MCP server that wants a token, and a proof with each request.
type provedServer struct {
	check    prooftest.Checker
	resource http.Handler

	mu      sync.Mutex
	methods map[string]int
	codes   map[string]int
	keys    map[string]bool
	token   string
}

func (p *provedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	wants := p.token
	p.mu.Unlock()
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "DPoP ")
	key, code := p.check.Check(w, r, token)
	if code == "" && token != wants {
		code = "invalid_token"
	}
	p.mu.Lock()
	p.methods[r.Method]++
	p.codes[code]++
	p.keys[key] = true
	p.mu.Unlock()
	if code != "" {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf("DPoP algs=ES256, error=%q", code))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	p.resource.ServeHTTP(w, r)
}

// All requests of sessions carry proofs: calls, streams, and the end.
func TestSessionsProveThatTheyHaveTheKeyOfTheirToken(t *testing.T) {
	const sessions, calls = 8, 8
	for _, ahead := range []time.Duration{0, 5 * time.Minute, -5 * time.Minute} {
		t.Run(ahead.String(), func(t *testing.T) {
			server := newTools()
			p := &provedServer{
				check: prooftest.Checker{Nonces: 1000, Ahead: ahead}, token: "first",
				resource: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil),
				methods:  map[string]int{}, codes: map[string]int{}, keys: map[string]bool{},
			}
			s := httptest.NewServer(p)
			defer s.Close()
			defer s.CloseClientConnections()
			p.check.Origin = s.URL
			key, err := proof.NewKey()
			require.NoError(t, err)
			source := func(token string) oauth2.TokenSource {
				return boundSource{oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token, TokenType: "DPoP"}), key}
			}
			h := &oauthHandler{source: source("first")}
			h.next = func(context.Context, *http.Response) (oauth2.TokenSource, error) { return source("second"), nil }
			bridge := New([]mcpbridge.Server{{Name: "test", URL: s.URL + "/mcp", Auth: mcpbridge.OAuth(h)}}, nil)
			defer bridge.Close()
			var open []dial.Conn
			for i := range sessions {
				c, err := bridge.Dial(t.Context(), dial.Request{Key: messages.Key{Server: "test", Scope: fmt.Sprint(i)}, Down: func(*mcpbridge.Error) {}})
				require.NoError(t, err, "%v", p.check.Err())
				open = append(open, c)
			}
			callAll := func() {
				results := make(chan *mcpbridge.Error)
				for i := range sessions * calls {
					go func() {
						e, _ := do(open[i%sessions])
						results <- e
					}()
				}
				for range sessions * calls {
					require.Nil(t, <-results)
				}
			}
			callAll()
			require.Zero(t, h.authorized.Load())
			p.mu.Lock()
			p.token = "second"
			p.mu.Unlock()
			callAll()
			require.EqualValues(t, 1, h.authorized.Load())
			for _, c := range open {
				require.NoError(t, c.Close(context.Background()))
			}

			p.mu.Lock()
			defer p.mu.Unlock()
			require.Len(t, p.methods, 3, "%v", p.methods)
			require.Len(t, p.keys, 2, "the key, and none for a refusal")
			require.Equal(t, ahead == 0, p.check.Err() == nil, "%v", p.check.Err())
			require.LessOrEqual(t, p.codes[prooftest.WantsNonce]+p.codes[prooftest.IsInvalid], 2)
			require.Positive(t, p.codes["invalid_token"])
		})
	}
}
