package bridge

import (
	"context"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/messages"
)

// identified is credentials that know whose they are.
type identified struct {
	*purse
	user string
}

func (i identified) Identity() string { return i.user }

func (i identified) Credentials(context.Context, messages.Key) (mcpbridge.Credentials, error) {
	return i, nil
}

// H-E7: another identity than that of the record gets a new session. The same identity with
// a new token resumes the session.
func TestRecordBelongsToAnIdentity(t *testing.T) {
	alice, bob := identified{refilled("a1", ""), "alice"}, identified{refilled("b1", ""), "bob"}
	header := func(value string) mcpbridge.Server {
		return mcpbridge.Server{Headers: map[string]string{"X-Token": value}}
	}
	for name, c := range map[string]struct {
		before, after mcpbridge.Server
		attached      bool
	}{
		"nobody":               {mcpbridge.Server{}, mcpbridge.Server{}, true},
		"the same header":      {header("alice"), header("alice"), true},
		"another header":       {header("alice"), header("bob"), false},
		"one header more":      {mcpbridge.Server{}, header("bob"), false},
		"one header less":      {header("alice"), mcpbridge.Server{}, false},
		"the same user":        {mcpbridge.Server{Auth: alice}, mcpbridge.Server{Auth: identified{refilled("a2", ""), "alice"}}, true},
		"another user":         {mcpbridge.Server{Auth: alice}, mcpbridge.Server{Auth: bob}, false},
		"no user before":       {mcpbridge.Server{}, mcpbridge.Server{Auth: bob}, false},
		"no user after":        {mcpbridge.Server{Auth: alice}, mcpbridge.Server{Auth: refilled("a1", "")}, false},
		"users of the key":     {mcpbridge.Server{Auth: refilled("a1", "")}, mcpbridge.Server{Auth: refilled("a2", "")}, true},
		"another user by URL":  {mcpbridge.Server{URL: "http://a:b@test/mcp"}, mcpbridge.Server{URL: "http://c:b@test/mcp"}, false},
		"another tenant":       {mcpbridge.Server{Auth: alice, Headers: map[string]string{"X-Tenant": "1"}}, mcpbridge.Server{Auth: alice, Headers: map[string]string{"X-Tenant": "2"}}, false},
		"the case of a header": {header("alice"), mcpbridge.Server{Headers: map[string]string{"x-token": "alice"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript().opening()
			dial := func(srv mcpbridge.Server, resume *mcpbridge.Resume) dial.Conn {
				srv.Name, srv.HTTPClient = "test", &http.Client{Transport: s}
				if srv.URL == "" {
					srv.URL = "http://test/mcp"
				}
				c, err := New([]mcpbridge.Server{srv}, nil).Dial(t.Context(), dial.Request{Key: messages.Key{Server: "test"}, Resume: resume, Down: func(*mcpbridge.Error) {}})
				require.NoError(t, err)
				return c
			}
			first := dial(c.before, nil)
			record := first.Resume()
			require.NoError(t, first.Detach(t.Context()))
			shown := len(s.requests)
			second := dial(c.after, record)
			require.Equal(t, c.attached, second.Info().Attached)
			if !c.attached {
				for _, req := range s.requests[shown : shown+2] {
					require.Empty(t, req.Header.Get(outbound.HeaderSession), "the id is shown to nobody else")
				}
			}
			require.NoError(t, second.Close(t.Context()))
		})
	}
}

func TestIdentityTellsNothing(t *testing.T) {
	at := &endpoint{dialect: new(dialect), Server: mcpbridge.Server{Headers: map[string]string{"X-Token": "hush"}}}
	one, two := at.identity("id-1", "alice"), at.identity("id-2", "alice")
	require.NotEqual(t, one, two, "not even that two records are of the same user")
	require.NotContains(t, one+two, "hush")
	require.Empty(t, new(endpoint).identity("id", ""))
	record := mcpbridge.Record{Resume: mcpbridge.Resume{SessionID: "id", Identity: one, Server: &mcp.InitializeResult{}}}
	require.NotContains(t, record.String()+record.LogValue().String(), one)
}

// A session that is to be ended is not replaced by a new one, whoever else it belongs to.
func TestSessionThatIsToBeEndedIsNeverReplaced(t *testing.T) {
	for name, change := range map[string]func(*mcpbridge.Resume){
		"of another endpoint": func(r *mcpbridge.Resume) { r.Endpoint = fingerprintOf("http://other/mcp") },
		"of another identity": func(r *mcpbridge.Resume) { r.Identity = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSessions(nil)
			c, _ := s.dial(t)
			resume := c.Resume()
			require.NoError(t, c.Detach(t.Context()))
			change(resume)
			requests := len(s.log)
			_, err := s.bridge.Dial(t.Context(), dial.Request{Key: c.key, Resume: resume, Only: true, Down: func(*mcpbridge.Error) {}})
			require.Equal(t, mcpbridge.Gone, mcpbridge.AsError(err).Session)
			require.ErrorContains(t, err, "the session is of another endpoint or identity")
			require.Len(t, s.log, requests, "nothing was sent")
		})
	}
}
