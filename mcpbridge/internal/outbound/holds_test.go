package outbound

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/tasks"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/bridgetest"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/hold"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// refusing is a server that answers 429.
var refusing = bridgetest.Says(429, "", "slow down", "Retry-After: 60")

// message returns a request of an operation, or with nil of the bridge itself.
func message(t *testing.T, s *Sender, method string, op messages.Operation) (*http.Request, *wire.Exchange) {
	ex := wire.NewExchange(t.Context(), nil, false)
	ex.Operation = op
	return httptest.NewRequestWithContext(ex, method, s.client.Config.URL, strings.NewReader("{}")), ex
}

// isHeldBack reports whether a sender keeps a call back.
func isHeldBack(t *testing.T, s *Sender) bool {
	req, _ := message(t, s, http.MethodPost, new(messages.CallTool))
	resp, err := s.Send(req)
	if err == nil {
		resp.Body.Close()
		return false
	}
	e := mcpbridge.AsError(err)
	require.Equal(t, mcpbridge.RateLimited, e.Class)
	require.Equal(t, mcpbridge.Alive, e.Session)
	require.False(t, e.Sent || e.MayHaveRun())
	require.Positive(t, e.RetryAfter)
	return true
}

func TestCallsWithTheSameCredentialsAtTheSamePlaceAreHeld(t *testing.T) {
	client := &http.Client{Transport: refusing}
	type caller struct {
		config   mcpbridge.Server
		headers  http.Header
		identity string
	}
	token := func(text string) http.Header { return http.Header{"Authorization": {text}} }
	base := mcpbridge.Server{Name: "one", URL: "http://test/mcp", HTTPClient: client}
	with := func(change func(*mcpbridge.Server)) mcpbridge.Server {
		other := base
		change(&other)
		return other
	}
	for name, c := range map[string]struct {
		one, other caller
		held       bool
	}{
		"the same":              {caller{config: base}, caller{config: base}, true},
		"another name":          {caller{config: base}, caller{config: with(func(s *mcpbridge.Server) { s.Name, s.KeepAlive = "two", 7 })}, true},
		"another path":          {caller{config: base}, caller{config: with(func(s *mcpbridge.Server) { s.URL = "http://test/two" })}, false},
		"another origin":        {caller{config: base}, caller{config: with(func(s *mcpbridge.Server) { s.URL = "http://test:81/mcp" })}, false},
		"another user":          {caller{config: base}, caller{config: with(func(s *mcpbridge.Server) { s.URL = "http://me:hush@test/mcp" })}, false},
		"another key":           {caller{config: base}, caller{config: with(func(s *mcpbridge.Server) { s.URL = "http://test/mcp?key=hush" })}, false},
		"another header":        {caller{config: base}, caller{config: with(func(s *mcpbridge.Server) { s.Headers = map[string]string{"X-Key": "hush"} })}, false},
		"another client":        {caller{config: base}, caller{config: with(func(s *mcpbridge.Server) { s.HTTPClient = &http.Client{Transport: refusing} })}, false},
		"the same token":        {caller{base, token("a"), ""}, caller{base, token("a"), ""}, true},
		"another token":         {caller{base, token("a"), ""}, caller{base, token("b"), ""}, false},
		"a token, and none":     {caller{base, token("a"), ""}, caller{config: base}, false},
		"a new token":           {caller{base, token("a"), "ann"}, caller{base, token("b"), "ann"}, true},
		"a token of another":    {caller{base, token("a"), "ann"}, caller{base, token("a"), "bob"}, false},
		"two values, and two":   {caller{base, http.Header{"A": {"b", "c"}}, ""}, caller{base, http.Header{"A": {"b"}, "C": {}}, ""}, false},
		"a token, and a header": {caller{base, token("a"), ""}, caller{config: with(func(s *mcpbridge.Server) { s.Headers = map[string]string{"Authorization": "a"} })}, false},
	} {
		t.Run(name, func(t *testing.T) {
			book := new(hold.Book)
			sender := func(c caller) *Sender {
				about := &transport.Session{Cut: t.Context(), Identity: c.identity, Holds: book}
				if c.headers != nil {
					about.Credentials = fixed(c.headers)
				}
				return NewSender(NewClient(&c.config), about)
			}
			one, other := sender(c.one), sender(c.other)
			require.False(t, isHeldBack(t, one))
			require.True(t, isHeldBack(t, one))
			require.Equal(t, c.held, isHeldBack(t, other))
			require.True(t, isHeldBack(t, other))
		})
	}
}

// fixed are credentials that never change.
type fixed http.Header

func (f fixed) Headers(context.Context) (http.Header, error)                 { return http.Header(f), nil }
func (f fixed) Refresh(context.Context, *http.Request, *http.Response) error { return nil }

func TestWhatSetsAHoldAndWhatIsHeld(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		op     messages.Operation
		sets   bool
		held   bool
	}{
		"tools/call":          {http.MethodPost, new(messages.CallTool), true, true},
		"prompts/get":         {http.MethodPost, new(messages.GetPrompt), true, true},
		"resources/read":      {http.MethodPost, new(messages.ReadResource), true, true},
		"completion/complete": {http.MethodPost, new(messages.Complete), true, true},
		"a custom method":     {http.MethodPost, &messages.Custom{Name: "acme/echo"}, true, true},
		"tasks/cancel":        {http.MethodPost, &messages.Custom{Name: tasks.MethodCancel}, true, false},
		"tools/list":          {http.MethodPost, new(messages.ListTools), true, false},
		"ping":                {http.MethodPost, new(messages.Ping), true, false},
		"subscribe":           {http.MethodPost, new(messages.Subscribe), true, false},
		"of the bridge":       {http.MethodPost, nil, false, false},
		"an answer":           {http.MethodGet, new(messages.CallTool), false, false},
		"a stream":            {http.MethodGet, nil, false, false},
		"the end":             {http.MethodDelete, nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := out(t, mcpbridge.Server{}, refusing)
			send := func() error {
				req, _ := message(t, s, c.method, c.op)
				resp, err := s.Send(req)
				if err == nil {
					resp.Body.Close()
				}
				return err
			}
			require.NoError(t, send())
			require.Equal(t, c.sets, isHeldBack(t, s))
			require.Equal(t, c.held, send() != nil)
		})
	}
}

func TestOnlyA429WithATimeHoldsCalls(t *testing.T) {
	for name, c := range map[string]struct {
		answer bridgetest.Answering
		held   bool
	}{
		"429":                  {refusing, true},
		"429, a date":          {bridgetest.Says(429, "", "", "Retry-After: Fri, 01 Jan 2100 00:00:00 GMT"), true},
		"429, a date that was": {bridgetest.Says(429, "", "", "Retry-After: Fri, 01 Jan 1999 00:00:00 GMT"), false},
		"429, no time":         {bridgetest.Says(429, "", ""), false},
		"429, nonsense":        {bridgetest.Says(429, "", "", "Retry-After: soon"), false},
		"503":                  {bridgetest.Says(503, "", "", "Retry-After: 60"), false},
		"200":                  {bridgetest.Says(200, "", "", "Retry-After: 60"), false},
	} {
		s := out(t, mcpbridge.Server{}, c.answer)
		require.False(t, isHeldBack(t, s))
		require.Equal(t, c.held, isHeldBack(t, s), name)
	}
}

// The server has got such a call already.
func TestCallThatIsRepeatedIsNotHeld(t *testing.T) {
	s := out(t, mcpbridge.Server{}, refusing)
	require.False(t, isHeldBack(t, s))
	req, ex := message(t, s, http.MethodPost, new(messages.CallTool))
	ex.Sent(true)
	resp, err := s.Send(req)
	require.NoError(t, err)
	require.Equal(t, 429, resp.StatusCode)
	require.True(t, isHeldBack(t, s))
}
