package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/build"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/oauth2"
)

// The tests of this file drive the MCP Go SDK without the bridge. Each passes as long as the
// SDK has the bug that the named code works around.

// upstreamRequest is what a server of these tests reads. A notification has no ID.
type upstreamRequest struct {
	ID     json.RawMessage
	Method string
	Params struct{ Name string }
}

// result returns an answer to the request that serves initialize and a call.
func (r upstreamRequest) result() string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{},"serverInfo":{"name":"x","version":"1"},"content":[]}}`, r.ID, protocolLegacy)
}

// upstreamServer is an http.RoundTripper that answers in memory. What the function leaves to
// it with nil gets the usual answer.
type upstreamServer func(*http.Request, upstreamRequest) (*http.Response, error)

func (s upstreamServer) RoundTrip(r *http.Request) (*http.Response, error) {
	var req upstreamRequest
	if r.Body != nil {
		json.NewDecoder(r.Body).Decode(&req)
	}
	resp, err := s(r, req)
	switch {
	case resp != nil || err != nil:
	case r.Method == http.MethodGet:
		resp = reply(http.StatusMethodNotAllowed, "", "")
	case req.ID == nil:
		resp = reply(http.StatusAccepted, "", "")
	default:
		resp = reply(http.StatusOK, "application/json", req.result())
	}
	if resp != nil {
		resp.Request = r
	}
	return resp, err
}

func (s upstreamServer) transport() *mcp.StreamableClientTransport {
	return &mcp.StreamableClientTransport{Endpoint: "http://server/mcp", HTTPClient: &http.Client{Transport: s}}
}

func reply(status int, contentType, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body))}
}

// upstreamPipe returns a transport to a server that handles the messages after initialize.
func upstreamPipe(t *testing.T, handle func(server net.Conn, req upstreamRequest)) mcp.Transport {
	near, far := net.Pipe()
	t.Cleanup(func() { far.Close() })
	go func() {
		for in := json.NewDecoder(far); ; {
			var req upstreamRequest
			if in.Decode(&req) != nil {
				return
			}
			if req.Method == "initialize" {
				fmt.Fprintln(far, req.result())
				continue
			}
			handle(far, req)
		}
	}()
	return &mcp.IOTransport{Reader: near, Writer: near}
}

func upstreamClient(options *mcp.ClientOptions) *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, options)
}

// upstreamConnect returns a session with an older protocol.
func upstreamConnect(t *testing.T, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	session, err := upstreamClient(nil).Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: protocolLegacy})
	require.NoError(t, err)
	t.Cleanup(func() { session.Close() })
	return session
}

func upstreamCall(session *mcp.ClientSession, tool string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool})
	return err
}

func TestUpstreamAllocatesABufferForEachValue(t *testing.T) {
	session := upstreamConnect(t, upstreamPipe(t, func(server net.Conn, req upstreamRequest) {
		if req.ID != nil {
			fmt.Fprintln(server, req.result())
		}
	}))
	const calls = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range calls {
		require.NoError(t, upstreamCall(session, "x"))
	}
	runtime.ReadMemStats(&after)
	require.Greater(t, (after.TotalAlloc-before.TotalAlloc)/calls, uint64(64<<10),
		"no longer needed: remove wire.Answers, and the parameters that client.go keeps from the SDK")
}

// go-sdk#683.
func TestUpstreamEndsTheSessionForOneBadAnswer(t *testing.T) {
	otherSession := reply(http.StatusOK, "text/html", "")
	otherSession.Header.Set("Mcp-Session-Id", "2")
	for name, c := range map[string]struct {
		answer *http.Response
		remove string
	}{
		"400":                   {reply(400, "text/plain", "no such region"), "streamable/refused.go"},
		"401":                   {reply(401, "text/plain", "token expired"), "streamable/refused.go"},
		"403":                   {reply(403, "text/plain", "this tool is not for you"), "streamable/refused.go"},
		"413":                   {reply(413, "text/plain", "request too large"), "streamable/refused.go"},
		"a page of a proxy":     {reply(200, "text/html", "<h1>Please wait</h1>"), "streamable/accepted.go"},
		"half a JSON body":      {reply(200, "application/json", `{"jsonrpc":"2.0","id":`), "streamable/accepted.go"},
		"an event without JSON": {reply(200, "text/event-stream", "data: oops\n\n"), "streamable/accepted.go"},
		"another session":       {otherSession, "streamable/accepted.go"},
	} {
		t.Run(name, func(t *testing.T) {
			session := upstreamConnect(t, upstreamServer(func(_ *http.Request, req upstreamRequest) (*http.Response, error) {
				if req.Params.Name == "bad" {
					return c.answer, nil
				}
				resp := reply(http.StatusOK, "application/json", req.result())
				resp.Header.Set("Mcp-Session-Id", "1")
				if req.ID == nil {
					return nil, nil
				}
				return resp, nil
			}).transport())
			require.NoError(t, upstreamCall(session, "first"))
			require.Error(t, upstreamCall(session, "bad"))
			require.Error(t, upstreamCall(session, "next"), "no longer needed: remove what handles this in %s", c.remove)
		})
	}
}

// go-sdk#186 was the same for the server.
func TestUpstreamPanicsWithoutParams(t *testing.T) {
	for _, message := range []string{
		`"id":"a","method":"elicitation/create"`, `"method":"notifications/elicitation/complete"`, `"method":"notifications/resources/updated"`,
	} {
		t.Run(message, func(t *testing.T) {
			panicked := make(chan bool, 1)
			client := upstreamClient(&mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "decline"}, nil
				},
				ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) { _ = req.Params.URI },
			})
			client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
					defer func() {
						reason := recover()
						if reason != nil {
							err = errors.New("a panic")
						}
						panicked <- reason != nil
					}()
					return next(ctx, method, req)
				}
			})
			session, err := client.Connect(t.Context(), upstreamPipe(t, func(server net.Conn, req upstreamRequest) {
				if req.Method == "notifications/initialized" {
					fmt.Fprintf(server, `{"jsonrpc":"2.0",%s}`+"\n", message)
				}
			}), &mcp.ClientSessionOptions{ProtocolVersion: protocolLegacy})
			require.NoError(t, err)
			defer session.Close()
			select {
			case is := <-panicked:
				require.True(t, is, "no longer needed: remove what refuses missing parameters in receiving")
			case <-time.After(10 * time.Second):
				require.Fail(t, "no longer needed: remove what refuses missing parameters in receiving")
			}
		})
	}
}

func TestUpstreamCountsTheRequestsOfEverySessionFromOne(t *testing.T) {
	var ids [2]string
	for i := range ids {
		session := upstreamConnect(t, upstreamPipe(t, func(server net.Conn, req upstreamRequest) {
			if req.ID != nil {
				ids[i] = string(req.ID)
				fmt.Fprintln(server, req.result())
			}
		}))
		require.NoError(t, upstreamCall(session, "x"))
	}
	require.Equal(t, ids[0], ids[1], "no longer needed: remove rpc.IDs")
}

// golang/go#42777, golang/go#47635, in Go before 1.27.
func TestUpstreamRepeatsARequestThatTheServerHasRead(t *testing.T) {
	server, config := newH2(t, func(fr *http2.Framer, stream uint32, nth int) bool {
		if nth < 3 {
			fr.WriteRSTStream(stream, http2.ErrCodeProtocol)
		}
		return nth < 3
	})
	session := upstreamConnect(t, &mcp.StreamableClientTransport{Endpoint: config.URL, HTTPClient: config.HTTPClient})
	_ = upstreamCall(session, "pay")
	if slices.Contains(build.Default.ReleaseTags, "go1.27") {
		require.Equal(t, 1, server.ran())
		return
	}
	require.Greater(t, server.ran(), 1, "no longer needed: remove withoutBodyAgain of outbound/once.go")
}

func TestUpstreamErrorsDoNotSayWhatHappened(t *testing.T) {
	over := func(answer func(upstreamRequest) (*http.Response, error)) error {
		return upstreamCall(upstreamConnect(t, upstreamServer(func(_ *http.Request, req upstreamRequest) (*http.Response, error) {
			if req.Method != "tools/call" {
				return nil, nil
			}
			return answer(req)
		}).transport()), "pay")
	}
	const remove = "no longer needed: remove what replaces the error in wire/explain.go"
	var rejected *jsonrpc.Error
	require.ErrorAs(t, over(func(upstreamRequest) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }), &rejected)
	require.EqualValues(t, -32005, rejected.Code, remove) // as if it had not been sent
	require.ErrorIs(t, over(func(req upstreamRequest) (*http.Response, error) {
		return reply(http.StatusOK, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32003,"message":"payment is declined"}}`, req.ID)), nil
	}), mcp.ErrConnectionClosed, remove)
	ended := upstreamCall(upstreamConnect(t, upstreamPipe(t, func(server net.Conn, req upstreamRequest) {
		if req.ID != nil {
			server.Close()
		}
	})), "pay")
	require.Error(t, ended)
	require.NotErrorIs(t, ended, mcp.ErrConnectionClosed, remove)
}

// go-sdk#633.
func TestUpstreamConnectWaitsForTheStandaloneStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var session *mcp.ClientSession
		release, connected := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(connected)
			session, _ = upstreamClient(nil).Connect(ctx, upstreamServer(func(r *http.Request, _ upstreamRequest) (*http.Response, error) {
				if r.Method == http.MethodGet {
					<-release
				}
				return nil, nil
			}).transport(), &mcp.ClientSessionOptions{ProtocolVersion: protocolLegacy})
		}()
		synctest.Wait()
		cancel()
		waiting := waits(connected)
		close(release)
		if <-connected; session != nil {
			session.Close()
		}
		require.True(t, waiting, "no longer needed: remove await in streamable/standalone.go")
	})
}

// waits reports that something has not ended when nothing moves any more.
func waits(ended <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-ended:
		return false
	default:
		return true
	}
}

// go-sdk#1175, go-sdk#1027.
func TestUpstreamEndsTheSessionForOne503ToItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams, running := 0, make(chan struct{})
		refused := make(chan struct{})
		session := upstreamConnect(t, upstreamServer(func(r *http.Request, req upstreamRequest) (*http.Response, error) {
			switch {
			case req.Method == "tools/call" && req.Params.Name == "slow":
				close(running)
				<-refused
			case r.Method == http.MethodGet:
				switch streams++; streams {
				case 1: // is cut
					return reply(http.StatusOK, "text/event-stream", "retry: 1\nid: 1\ndata:\n\n"), nil
				case 2:
					<-running
					time.AfterFunc(time.Second, func() { close(refused) })
					return reply(http.StatusServiceUnavailable, "text/plain", "the server is being updated"), nil
				}
			}
			return nil, nil
		}).transport())
		require.Error(t, upstreamCall(session, "slow"), "no longer needed: remove what opens streamable/stream.go again")
		require.Error(t, upstreamCall(session, "next"), "no longer needed: remove what opens streamable/stream.go again")
		<-refused
	})
}

func TestUpstreamFollowsRedirectsToAnotherOrigin(t *testing.T) {
	leaked := ""
	session := upstreamConnect(t, upstreamServer(func(r *http.Request, req upstreamRequest) (*http.Response, error) {
		switch {
		case r.URL.Host == "other":
			leaked = r.Header.Get("Mcp-Session-Id")
		case req.Method == "tools/call":
			resp := reply(http.StatusTemporaryRedirect, "", "")
			resp.Header.Set("Location", "http://other/")
			return resp, nil
		case req.Method == "initialize":
			resp := reply(http.StatusOK, "application/json", req.result())
			resp.Header.Set("Mcp-Session-Id", "secret")
			return resp, nil
		}
		return nil, nil
	}).transport())
	_ = upstreamCall(session, "login")
	require.Equal(t, "secret", leaked, "no longer needed: remove outbound/redirect.go")
}

// upstreamSSE returns a session over HTTP+SSE with a server whose endpoint is given.
// What post returns for a message is an event, or with a status it is refused.
func upstreamSSE(t *testing.T, endpoint string, post func(*http.Request, upstreamRequest) (event string, status int)) (*mcp.ClientSession, error) {
	stream, events := io.Pipe()
	t.Cleanup(func() { events.Close() })
	session, err := upstreamClient(nil).Connect(t.Context(), &mcp.SSEClientTransport{
		Endpoint: "http://server/sse",
		HTTPClient: &http.Client{Transport: upstreamServer(func(r *http.Request, req upstreamRequest) (*http.Response, error) {
			if r.Method == http.MethodGet {
				go fmt.Fprintf(events, "event: endpoint\ndata: %s\n\n", endpoint)
				resp := reply(http.StatusOK, "text/event-stream", "")
				resp.Body = stream
				return resp, nil
			}
			event, status := post(r, req)
			if req.ID != nil && status == http.StatusAccepted {
				go fmt.Fprintf(events, "%sevent: message\ndata: %s\n\n", event, req.result())
			}
			return reply(status, "", ""), nil
		})},
	}, &mcp.ClientSessionOptions{ProtocolVersion: protocolLegacy})
	if err == nil {
		t.Cleanup(func() { session.Close() })
	}
	return session, err
}

func TestUpstreamTakesAnEndpointOnAnotherOrigin(t *testing.T) {
	leaked := false
	upstreamSSE(t, "http://other/", func(r *http.Request, _ upstreamRequest) (string, int) {
		leaked = leaked || r.URL.Host == "other"
		return "", http.StatusAccepted
	})
	require.True(t, leaked, "no longer needed: remove the comparison of origins in outbound/sender.go")
}

// go-sdk#637 and go-sdk#723 are the same for streamable HTTP.
func TestUpstreamEndsASessionOverSSE(t *testing.T) {
	for name, c := range map[string]struct {
		event  string
		status int
		remove string
	}{
		"for a heartbeat":    {"event: ping\ndata: keepalive\n\n", http.StatusAccepted, "sse/event_stream.go"},
		"for a refused POST": {"", http.StatusServiceUnavailable, "sse.roundTripper.refused"},
	} {
		t.Run(name, func(t *testing.T) {
			session, err := upstreamSSE(t, "/", func(_ *http.Request, req upstreamRequest) (string, int) {
				if req.Params.Name == "bad" {
					return c.event, c.status
				}
				return "", http.StatusAccepted
			})
			require.NoError(t, err)
			require.NoError(t, upstreamCall(session, "first"))
			require.Error(t, upstreamCall(session, "bad"), "no longer needed: remove %s", c.remove)
			require.Error(t, upstreamCall(session, "next"), "no longer needed: remove %s", c.remove)
		})
	}
}

// go-sdk#988 is the same for another handler.
func TestUpstreamForgetsHowToRefreshClientCredentials(t *testing.T) {
	server := upstreamServer(func(r *http.Request, _ upstreamRequest) (*http.Response, error) {
		say := func(body string) (*http.Response, error) {
			if err := r.Context().Err(); err != nil {
				return nil, err
			}
			return reply(http.StatusOK, "application/json", body), nil
		}
		switch {
		case r.URL.Path == "/.well-known/oauth-protected-resource/mcp":
			return say(`{"resource":"http://localhost/mcp","authorization_servers":["http://localhost"]}`)
		case r.URL.Path == "/.well-known/oauth-authorization-server":
			return say(`{"issuer":"http://localhost","token_endpoint":"http://localhost/token","authorization_endpoint":"http://localhost/authorize",` +
				`"response_types_supported":["code"],"token_endpoint_auth_methods_supported":["client_secret_post"],"code_challenge_methods_supported":["S256"]}`)
		case r.URL.Path == "/token": // a token that has to be refreshed before the next request
			return say(`{"access_token":"token","token_type":"Bearer","expires_in":1}`)
		case r.Header.Get("Authorization") != "Bearer token":
			return reply(http.StatusUnauthorized, "", ""), nil
		}
		return nil, nil
	})
	transport := server.transport()
	transport.Endpoint = "http://localhost/mcp"
	handler, err := extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{
		Credentials: &oauthex.ClientCredentials{ClientID: "me", ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: "secret"}},
		HTTPClient:  transport.HTTPClient,
	})
	require.NoError(t, err)
	transport.OAuthHandler = handler
	ctx, cancel := context.WithCancel(t.Context()) // as a timeout for Connect would be
	session, err := upstreamClient(nil).Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: protocolLegacy})
	require.NoError(t, err)
	defer session.Close()
	require.NoError(t, upstreamCall(session, "x"))
	cancel()
	require.ErrorIs(t, upstreamCall(session, "x"), context.Canceled, "no longer needed: remove the context without end in mcpbridge/oauth.go")
}

// go-sdk#1283.
func TestUpstreamListensOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listens := 0
		transport := upstreamServer(func(_ *http.Request, req upstreamRequest) (*http.Response, error) {
			switch {
			case req.Method == "subscriptions/listen": // a proxy cuts the stream
				listens++
				return reply(http.StatusOK, "text/event-stream", ": hello\n\n"), nil
			case req.ID != nil:
				return reply(http.StatusOK, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28"],`+
					`"resultType":"complete","ttlMs":0,"cacheScope":"public","capabilities":{"tools":{"listChanged":true}},"content":[]}}`, req.ID)), nil
			}
			return nil, nil
		}).transport()
		session, err := upstreamClient(&mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {}}).Connect(t.Context(), transport, nil)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.Equal(t, 1, listens, "no longer needed: remove subscribe in streamable/standalone.go")
		require.NoError(t, session.Close())
	})
}

func TestUpstreamRefusesEventStreamsOfTheSpecification(t *testing.T) {
	for name, stream := range map[string]string{
		"a field without a colon":           "data: %s\nkeepalive\n\n",
		"an empty id, which needs no colon": "id\ndata: %s\n\n",
		"lines that end with CR":            "event: message\rdata: %s\r\r",
		"a byte order mark":                 "\ufeffdata: %s\n\n",
		"an event that is cut off":          "id: 1\nretry: 1\ndata:\n\ndata: {\"jsonrpc\":",
	} {
		t.Run(name, func(t *testing.T) {
			answer := "" // what the stream is resumed with
			session := upstreamConnect(t, upstreamServer(func(r *http.Request, req upstreamRequest) (*http.Response, error) {
				switch {
				case r.Header.Get("Last-Event-ID") == "1":
					return reply(http.StatusOK, "text/event-stream", answer), nil
				case req.Method != "tools/call":
					return nil, nil
				case req.Params.Name == "first":
					return reply(http.StatusOK, "text/event-stream", "data: "+req.result()+"\n\n"), nil
				}
				answer = "data: " + req.result() + "\n\n"
				return reply(http.StatusOK, "text/event-stream", strings.ReplaceAll(stream, "%s", req.result())), nil
			}).transport())
			require.NoError(t, upstreamCall(session, "first"))
			require.Error(t, upstreamCall(session, "bad"), "no longer needed: remove what handles this in rpc/event_buffer.go")
		})
	}
}

func TestUpstreamCallWaitsForAPipeThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reading := make(chan struct{})
		hangs := make(chan struct{})
		session := upstreamConnect(t, upstreamPipe(t, func(_ net.Conn, req upstreamRequest) {
			if req.Method == "notifications/initialized" {
				close(reading)
			}
			<-hangs
		}))
		<-reading
		ctx, cancel := context.WithCancel(t.Context())
		returned := make(chan struct{})
		go func() {
			defer close(returned)
			session.CallTool(ctx, &mcp.CallToolParams{Name: "x", Arguments: strings.Repeat("x", 1<<17)})
		}()
		synctest.Wait()
		cancel()
		waiting := waits(returned)
		close(hangs)
		<-returned
		require.True(t, waiting, "no longer needed: remove the goroutine of bridge/do.go")
	})
}

// upstreamLogin is an OAuth handler whose tokens come when a channel is closed.
type upstreamLogin struct{ wait atomic.Pointer[chan struct{}] }

func (l *upstreamLogin) TokenSource(context.Context) (oauth2.TokenSource, error) { return l, nil }

func (l *upstreamLogin) Authorize(context.Context, *http.Request, *http.Response) error { return nil }

func (l *upstreamLogin) Token() (*oauth2.Token, error) {
	if wait := l.wait.Load(); wait != nil {
		<-*wait
	}
	return &oauth2.Token{AccessToken: "token"}, nil
}

var _ auth.OAuthHandler = (*upstreamLogin)(nil)

func TestUpstreamCallWaitsForAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := upstreamServer(func(*http.Request, upstreamRequest) (*http.Response, error) { return nil, nil }).transport()
		login, down, returned := new(upstreamLogin), make(chan struct{}), make(chan struct{})
		transport.OAuthHandler = login
		session := upstreamConnect(t, transport)
		login.wait.Store(&down)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(returned)
			session.CallTool(ctx, &mcp.CallToolParams{Name: "x"})
		}()
		synctest.Wait()
		cancel()
		waiting := waits(returned)
		close(down)
		<-returned
		require.True(t, waiting, "no longer needed: remove the turn of mcpbridge/oauth.go")
	})
}

// go-sdk#1183 was about another of its waits.
func TestUpstreamCloseWaitsForCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		session := upstreamConnect(t, upstreamPipe(t, func(net.Conn, upstreamRequest) {}))
		ctx, cancel := context.WithCancel(t.Context())
		go session.CallTool(ctx, &mcp.CallToolParams{Name: "slow"})
		synctest.Wait()
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			session.Close()
		}()
		waiting := waits(closed)
		cancel()
		<-closed
		require.True(t, waiting, "no longer needed: remove the bound of conn.Close in bridge/conn.go")
	})
}

func TestUpstreamCallWaitsAfterItsAnswer(t *testing.T) {
	for name, answer := range map[string]string{
		"the id as a string": `{"jsonrpc":"2.0","id":"2","result":{"content":[]}}`,
		"a request":          `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				session := upstreamConnect(t, upstreamServer(func(_ *http.Request, req upstreamRequest) (*http.Response, error) {
					if req.Method != "tools/call" {
						return nil, nil
					}
					return reply(http.StatusOK, "application/json", answer), nil
				}).transport())
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "x"})
				require.ErrorIs(t, err, context.DeadlineExceeded, "no longer needed: remove what handles this in streamable/accepted.go")
			})
		})
	}
}

// go-sdk#1205 brought the limit.
func TestUpstreamHasNoDefaultLimitOfEvents(t *testing.T) {
	session := upstreamConnect(t, upstreamServer(func(_ *http.Request, req upstreamRequest) (*http.Response, error) {
		if req.Method != "tools/call" {
			return nil, nil
		}
		large := strings.Replace(req.result(), `"content":[]`, `"content":[],"x":"`+strings.Repeat("x", mcp.DefaultMaxEventSize)+`"`, 1)
		return reply(http.StatusOK, "text/event-stream", "data: "+large+"\n\n"), nil
	}).transport())
	require.NoError(t, upstreamCall(session, "large"), "no longer needed: remove the limit of streamable/answer_stream.go")
}

func TestUpstreamChangesTheParametersOfACaller(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "x", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "hello"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	near, far := mcp.NewInMemoryTransports()
	serving, err := server.Connect(t.Context(), far, nil)
	require.NoError(t, err)
	session, err := upstreamClient(nil).Connect(t.Context(), near, nil)
	require.NoError(t, err)
	params := &mcp.CallToolParams{Name: "hello", Meta: mcp.Meta{"trace": "1"}}
	_, err = session.CallTool(t.Context(), params)
	require.NoError(t, err)
	require.Greater(t, len(params.Meta), 1, "no longer needed: remove callParams of bridge/operation.go")
	require.NoError(t, session.Close())
	require.NoError(t, serving.Wait())
}

func TestUpstreamKeepsTwoConnections(t *testing.T) {
	const callers = 8
	var opened atomic.Int32
	var all *sync.WaitGroup // the calls that have to come before any is answered
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resp, _ := upstreamServer(func(_ *http.Request, req upstreamRequest) (*http.Response, error) {
			if req.Method == "tools/call" {
				all.Done()
				all.Wait()
			}
			return nil, nil
		}).RoundTrip(r)
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		io.Copy(w, resp.Body)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	session := upstreamConnect(t, &mcp.StreamableClientTransport{Endpoint: server.URL})
	for range 2 {
		all = new(sync.WaitGroup)
		all.Add(callers)
		var calls sync.WaitGroup
		for range callers {
			calls.Go(func() { _ = upstreamCall(session, "x") })
		}
		calls.Wait()
	}
	require.GreaterOrEqual(t, opened.Load(), int32(2*callers-2), "no longer needed: remove ownTransport of outbound/client.go")
	require.NoError(t, session.Close())
}
