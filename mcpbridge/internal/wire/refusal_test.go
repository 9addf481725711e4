package wire

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/bridgetest"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
)

// H-B1 to H-B4: a refusal is certain evidence only in the form that the specification
// defines. Its words do not matter.
func TestWhatARefusalMeansByItself(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   mcpbridge.Class
		doubt  bool
	}{
		"404, text":               {404, "session not found", mcpbridge.Expired, false},
		"404, no words":           {404, "", mcpbridge.Expired, false},
		"404, page of a proxy":    {404, "<html><head><title>404 Not Found</title></head></html>", mcpbridge.ServerError, true},
		"404, id null":            {404, bridgetest.Failure("null", "-32001", "Session not found"), mcpbridge.Expired, false},
		"404, id of text":         {404, bridgetest.Failure(`"server-error"`, "-32600", "Session not found"), mcpbridge.Expired, false},
		"404, empty id":           {404, bridgetest.Failure(`""`, "-32001", "Session not found"), mcpbridge.Expired, false},
		"404, id of another":      {404, bridgetest.Failure("8", "-32603", "oops"), mcpbridge.Expired, false},
		"410":                     {410, "", mcpbridge.Expired, false},
		"404, own id":             {404, bridgetest.Failure("7", "-32001", "Session not found"), mcpbridge.Invalid, true},
		"404, own id, resource":   {404, bridgetest.Failure("7", "-32002", "Resource not found"), mcpbridge.Invalid, true},
		"410, own id":             {410, bridgetest.Failure("7", "-32600", "gone"), mcpbridge.Invalid, true},
		"400, session in words":   {400, "Invalid or missing session ID", mcpbridge.Invalid, true},
		"400, in German":          {400, "Unbekannte Sitzung", mcpbridge.Invalid, true},
		"400, no words":           {400, "", mcpbridge.Invalid, true},
		"400, invalid params":     {400, bridgetest.Failure("7", "-32602", "Unknown tool: close_session"), mcpbridge.Invalid, true},
		"400, wrong header":       {400, bridgetest.Failure("7", "-32020", "header mismatch"), mcpbridge.Invalid, false},
		"400, URL to be visited":  {400, bridgetest.Failure("7", "-32042", "visit"), mcpbridge.Invalid, false},
		"400, wrong version":      {400, bridgetest.Failure("7", "-32022", "version"), mcpbridge.Invalid, false},
		"401, session of a login": {401, "Your session has expired. Please sign in again", mcpbridge.Unauthorized, true},
		"403":                     {403, "Session required: sign in", mcpbridge.Unauthorized, true},
		"407":                     {407, "", mcpbridge.Unauthorized, true},
		"408":                     {408, "", mcpbridge.ServerError, true},
		"422":                     {422, "Unexpected message, expect initialize request", mcpbridge.Invalid, true},
		"429":                     {429, "too many sessions", mcpbridge.RateLimited, false},
		"500, session in words":   {500, "session not found in the store", mcpbridge.ServerError, true},
		"503, session in words":   {503, "session is unknown on this API instance", mcpbridge.ServerError, true},
		"302":                     {302, "", mcpbridge.Protocol, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := Refusal{Status: c.status, Body: []byte(c.body), OfSession: true, ID: json.RawMessage("7"), Session: "s"}.Judge()
			require.Equal(t, c.want, e.Class, "%v", e)
			require.Equal(t, c.want == mcpbridge.Expired, e.Session == mcpbridge.Gone)
			require.Equal(t, c.doubt, e.Doubt)
			require.True(t, e.Sent)
			e = Refusal{Status: c.status, Body: []byte(c.body), ID: json.RawMessage("7")}.Judge()
			require.Equal(t, mcpbridge.Alive, e.Session, "without a session id nothing expires")
			require.False(t, e.Doubt)
		})
	}
	e := Refusal{Status: 404, Body: []byte("<html>"), OfSession: true, ID: json.RawMessage("7")}.Judge()
	require.Equal(t, mcpbridge.ServerError, e.Class, "a tool may have acted, in a session without an id, too")
	require.True(t, e.Doubt && e.MayHaveRun())
	e = Refusal{Status: 404, Body: []byte("404 page not found")}.Judge()
	require.Equal(t, mcpbridge.Unavailable, e.Class)
	require.Equal(t, mcpbridge.Strange, e.Server)
}

func TestRetryAfterIsReadInBothForms(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-1": 0, "soon": 0, "999999999": 24 * time.Hour,
		time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat): 0,
	} {
		require.Equal(t, want, RetryAfter(http.Header{"Retry-After": {value}}), value)
	}
	at := time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)
	require.InDelta(t, 60, RetryAfter(http.Header{"Retry-After": {at}}).Seconds(), 2)
}

func FuzzJudge(f *testing.F) {
	f.Add(404, "session not found", true)
	f.Add(400, bridgetest.Failure("7", "-32000", "Bad Request: No valid session ID provided"), true)
	f.Add(503, "\x1b[2J\n\xff", false)
	f.Add(400, strings.Repeat("a\xff", 500), true)
	f.Fuzz(func(t *testing.T, status int, body string, had bool) {
		id := map[bool]string{true: "made-up-session"}[had]
		e := Refusal{Status: status, Header: http.Header{"Retry-After": {body}}, Body: []byte(body), OfSession: had, ID: json.RawMessage("7"), Session: id}.Judge()
		require.True(t, had || e.Session == mcpbridge.Alive)
		require.Equal(t, e.Session == mcpbridge.Gone, e.Class == mcpbridge.Expired)
		require.NotEqual(t, mcpbridge.Broken, e.Session)
		require.LessOrEqual(t, len(e.Detail), redact.MaxDetail+100)
		require.False(t, strings.ContainsFunc(e.Detail, unicode.IsControl))
		require.GreaterOrEqual(t, e.RetryAfter, time.Duration(0))
	})
}

// H-C3
func TestRetryAfterIsBounded(t *testing.T) {
	for _, value := range []string{"999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		require.Equal(t, 24*time.Hour, RetryAfter(http.Header{"Retry-After": {value}}), value)
	}
}
