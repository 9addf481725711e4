package mcpbridge

import (
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
)

// rpc returns a JSON-RPC error response.
func rpc(id, code, message string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":` + code + `,"message":"` + message + `"}}`
}

func TestRefusalsThatMeanTheSessionIsUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
	}{
		// The table of the design.
		"Go SDK":                        {404, "session not found"},
		"TypeScript SDK":                {404, rpc("null", "-32001", "Session not found")},
		"Python SDK, FastMCP":           {404, rpc(`"server-error"`, "-32600", "Session not found")},
		"C# SDK":                        {404, rpc(`""`, "-32001", "Session not found")},
		"TypeScript example":            {400, rpc("null", "-32000", "Bad Request: No valid session ID provided")},
		"TypeScript example, echoed id": {400, rpc("7", "-32000", "Bad Request: No valid session ID provided")},
		"server-everything":             {400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`},
		"TypeScript SDK, restarted":     {400, rpc("null", "-32000", "Bad Request: Server not initialized")},
		"other":                         {400, "Invalid or missing session ID"},
		"proxy in front":                {404, "<html><head><title>404 Not Found</title></head></html>"},
		"gone":                          {410, ""},
		// The rule behind it.
		"empty 404":                  {404, ""},
		"404 with an unknown error":  {404, rpc("7", "-32603", "oops")},
		"expired":                    {400, `{"error":"Session expired"}`},
		"session id, not recognized": {400, "Session ID abc-123 is not recognized"},
		"unknown":                    {400, "unknown session"},
		"terminated":                 {400, rpc("7", "-32600", "Session has been terminated")},
		"does not exist":             {422, "The session does not exist"},
		"header name":                {400, "Missing required header: Mcp-Session-Id"},
		"code word":                  {400, `{"code":"SESSION_NOT_FOUND"}`},
		"401 about a session":        {401, `{"error":"invalid_session"}`},
		"403 about a session":        {403, "session expired"},
		"transport":                  {400, "Transport not initialized"},
		"409":                        {409, "Conflict: no such session"},
		"expects initialize":         {400, "expected initialize request"},
		"rmcp":                       {401, "Unauthorized: Session not found"},
		"rmcp, 422":                  {422, "Unexpected message, expect initialize request"},
		"cannot be found":            {400, "Session 42 cannot be found"},
		"has ended":                  {400, `{"message":"The MCP session has ended"}`},
		"isn't active":               {403, "This session isn't active"},
		"not initialised":            {400, "Bad Request: Session not initialised"},
		"timed out":                  {440, "Session timed out"},
		"does not match":             {400, "Session ID does not match"},
		"over two lines":             {400, "Bad Request\nsession not found"},
	} {
		t.Run(name, func(t *testing.T) {
			e := judge(c.status, http.Header{}, []byte(c.body), true)
			require.Equal(t, Expired, e.Class, "%v", e)
			require.Equal(t, Gone, e.Session)
			e = judge(c.status, http.Header{}, []byte(c.body), false)
			require.Equal(t, Alive, e.Session, "without a session id nothing expires")
		})
	}
}

func TestRefusalsThatMeanSomethingElse(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   Class
	}{
		"401":                         {401, "token expired", Unauthorized},
		"401, invalid token":          {401, `{"error":"invalid_token","error_description":"The access token expired"}`, Unauthorized},
		"403":                         {403, "", Unauthorized},
		"407":                         {407, "", Unauthorized},
		"429":                         {429, "too many sessions", RateLimited},
		"500 about sessions":          {500, "session not found in the store", ServerError},
		"502":                         {502, "<html>Bad Gateway</html>", ServerError},
		"503":                         {503, "", ServerError},
		"408":                         {408, "", ServerError},
		"400":                         {400, "Bad Request", Invalid},
		"405":                         {405, "Method Not Allowed", Invalid},
		"406":                         {406, "Not Acceptable: Client must accept text/event-stream", Invalid},
		"413":                         {413, "Payload Too Large", Invalid},
		"415":                         {415, "Unsupported Media Type", Invalid},
		"invalid params that mention": {400, rpc("7", "-32602", "argument session_id: session not found"), Invalid},
		"unknown method":              {404, rpc("7", "-32601", "Method not found"), Invalid},
		"unknown tool":                {400, rpc("7", "-32602", "Unknown tool: close_session"), Invalid},
		"redirect":                    {302, "", Protocol},
	} {
		t.Run(name, func(t *testing.T) {
			e := judge(c.status, http.Header{}, []byte(c.body), true)
			require.Equal(t, c.want, e.Class, "%v", e)
			require.Equal(t, Alive, e.Session)
			require.True(t, e.Sent)
		})
	}
	e := judge(404, http.Header{}, []byte("404 page not found"), false)
	require.Equal(t, Unavailable, e.Class)
	require.Contains(t, e.Detail, "endpoint")
}

func TestRetryAfterIsReadInBothForms(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-1": 0, "soon": 0, "999999999": 24 * time.Hour,
		time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat): 0,
	} {
		require.Equal(t, want, retryAfter(http.Header{"Retry-After": {value}}), value)
	}
	at := time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)
	require.InDelta(t, 60, retryAfter(http.Header{"Retry-After": {at}}).Seconds(), 2)
}

func FuzzJudge(f *testing.F) {
	f.Add(404, "session not found", true)
	f.Add(400, rpc("7", "-32000", "Bad Request: No valid session ID provided"), true)
	f.Add(503, "\x1b[2J\n\xff", false)
	f.Add(400, strings.Repeat("a\xff", 500), true)
	f.Fuzz(func(t *testing.T, status int, body string, had bool) {
		e := judge(status, http.Header{"Retry-After": {body}}, []byte(body), had)
		require.True(t, had || e.Session == Alive)
		require.Equal(t, e.Session == Gone, e.Class == Expired)
		require.NotEqual(t, Broken, e.Session)
		require.LessOrEqual(t, len(e.Detail), maxDetail+100)
		require.False(t, strings.ContainsFunc(e.Detail, unicode.IsControl))
		require.GreaterOrEqual(t, e.RetryAfter, time.Duration(0))
	})
}
