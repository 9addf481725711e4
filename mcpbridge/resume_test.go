package mcpbridge

import (
	"context"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// identified is credentials that know whose they are.
type identified struct {
	*purse
	user string
}

func (i identified) Identity() string { return i.user }

func (i identified) Credentials(context.Context, messages.Key) (Credentials, error) { return i, nil }

// Finding E7: whoever has another identity than the record gets a session of their own,
// and one whose token is a new one goes on.
func TestRecordBelongsToAnIdentity(t *testing.T) {
	alice, bob := identified{refilled("a1", ""), "alice"}, identified{refilled("b1", ""), "bob"}
	header := func(value string) Server { return Server{Headers: map[string]string{"X-Token": value}} }
	for name, c := range map[string]struct {
		before, after Server
		attached      bool
	}{
		"nobody":               {Server{}, Server{}, true},
		"the same header":      {header("alice"), header("alice"), true},
		"another header":       {header("alice"), header("bob"), false},
		"one header more":      {Server{}, header("bob"), false},
		"one header less":      {header("alice"), Server{}, false},
		"the same user":        {Server{Auth: alice}, Server{Auth: identified{refilled("a2", ""), "alice"}}, true},
		"another user":         {Server{Auth: alice}, Server{Auth: bob}, false},
		"no user before":       {Server{}, Server{Auth: bob}, false},
		"no user after":        {Server{Auth: alice}, Server{Auth: refilled("a1", "")}, false},
		"users of the key":     {Server{Auth: refilled("a1", "")}, Server{Auth: refilled("a2", "")}, true},
		"another user by URL":  {Server{URL: "http://a:b@test/mcp"}, Server{URL: "http://c:b@test/mcp"}, false},
		"another tenant":       {Server{Auth: alice, Headers: map[string]string{"X-Tenant": "1"}}, Server{Auth: alice, Headers: map[string]string{"X-Tenant": "2"}}, false},
		"the case of a header": {header("alice"), Server{Headers: map[string]string{"x-token": "alice"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript().opening()
			dial := func(srv Server, resume *Resume) Conn {
				srv.Name, srv.HTTPClient = "test", &http.Client{Transport: s}
				if srv.URL == "" {
					srv.URL = "http://test/mcp"
				}
				c, err := New([]Server{srv}, nil).Dial(t.Context(), DialRequest{Key: messages.Key{Server: "test"}, Resume: resume, Down: func(*Error) {}})
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
					require.Empty(t, req.Header.Get(headerSession), "the id is shown to nobody else")
				}
			}
			require.NoError(t, second.Close(t.Context()))
		})
	}
}

func TestIdentityTellsNothing(t *testing.T) {
	at := &endpoint{Server: Server{Headers: map[string]string{"X-Token": "hush"}}}
	one, two := at.identity("id-1", "alice"), at.identity("id-2", "alice")
	require.NotEqual(t, one, two, "not even that two records are of the same user")
	require.NotContains(t, one+two, "hush")
	require.Empty(t, new(endpoint).identity("id", ""))
	record := Record{Resume: Resume{SessionID: "id", Identity: one, Server: &mcp.InitializeResult{}}}
	require.NotContains(t, record.String()+record.LogValue().String(), one)
}

// A session that is to be ended is not replaced by a new one, whoever else it belongs to.
func TestSessionThatIsToBeEndedIsNeverReplaced(t *testing.T) {
	for name, change := range map[string]func(*Resume){
		"of another endpoint": func(r *Resume) { r.Endpoint = fingerprintOf("http://other/mcp") },
		"of another identity": func(r *Resume) { r.Identity = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSessions(nil)
			c, _ := s.dial(t)
			resume := c.Resume()
			require.NoError(t, c.Detach(t.Context()))
			change(resume)
			requests := len(s.log)
			_, err := c.at.bridge.Dial(t.Context(), DialRequest{Key: c.key, Resume: resume, Only: true, Down: func(*Error) {}})
			require.Equal(t, Gone, AsError(err).Session)
			require.ErrorContains(t, err, "the session is of another endpoint or identity")
			require.Len(t, s.log, requests, "nothing was sent")
		})
	}
}
