package bridge

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/messages"
)

// onSession answers the requests of one session in a way of its own, and others well.
func onSession(id string, how answering) map[string]answering {
	mine := func(well answering) answering {
		return func(req *http.Request) (*http.Response, error) {
			if req.Header.Get(outbound.HeaderSession) == id {
				return how(req)
			}
			return well(req)
		}
	}
	return map[string]answering{
		"tools/call": mine(says(200, outbound.TypeJSON, done)), "ping": mine(says(200, outbound.TypeJSON, done)),
		"tools/list": mine(says(200, outbound.TypeJSON, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`)),
	}
}

// C14: a tool acts, breaks its session, and answers an error, with the id of the call or without, also as the first call.
func TestErrorOfACallThatBrokeItsSessionProvesNothing(t *testing.T) {
	for name, how := range map[string]answering{
		"200": says(200, outbound.TypeJSON, failure("%s", "-32603", "Internal error")),
		"400": says(400, outbound.TypeJSON, failure("%s", "-32603", "Internal error")),
		"409": says(409, outbound.TypeJSON, failure("%s", "-32603", "Internal error")),
		"422": says(422, outbound.TypeJSON, "["+failure("%s", "-32603", "Internal error")+"]"),

		"400, no id":            says(400, outbound.TypeJSON, failure("null", "-32000", "upstream closed")),
		"400, id of another":    says(400, outbound.TypeJSON, failure("4", "-32000", "upstream closed")),
		"400, invalid params":   says(400, outbound.TypeJSON, failure("null", "-32602", "upstream closed")),
		"401, text":             says(401, "", "backend died"),
		"408, text":             says(408, "", "request timeout"),
		"409, text":             says(409, "", "conflict"),
		"422, JSON, no message": says(422, outbound.TypeJSON, `{"error":"backend died"}`),
		"404, a page":           says(404, "text/html", "<html>Not Found</html>"),
		"410, a page":           says(410, "text/html", "<html>Gone</html>"),
	} {
		for when, isFirst := range map[string]bool{"first call": true, "later call": false} {
			t.Run(name+", "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSessions(says(404, "", "no such session"))
					b := New([]mcpbridge.Server{s.server()}, nil)
					defer b.Close()
					c, err := b.Dial(t.Context(), dial.Request{Key: messages.Key{Server: "test"}, Down: func(*mcpbridge.Error) {}})
					require.NoError(t, err)
					if !isFirst {
						e, _ := do(c)
						require.Nil(t, e)
					}
					s.answers(nil, onSession("session-number-1", how))
					e, _ := do(c)
					require.True(t, e.MayHaveRun(), "%v", e)
					require.NotContains(t, []mcpbridge.Class{mcpbridge.Expired, mcpbridge.NotSent}, e.Class)
					require.Equal(t, 1, s.count("tools/call"))
					time.Sleep(5 * time.Second) // a session that is fresh is asked again for a while
					e, _ = do(c)
					require.Equal(t, mcpbridge.Gone, e.Session, "%v", e)
					require.NoError(t, c.Close(t.Context()))
					synctest.Wait()
					require.Zero(t, s.knows())
				})
			})
		}
	}
}

// C11: that a server has no ping, or refuses it and its lists, does not end a session.
func TestSessionIsAttachedToThoughTheServerRefusesToBeAsked(t *testing.T) {
	ways := map[string]answering{"hung": func(req *http.Request) (*http.Response, error) {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}}
	for name, how := range refusals {
		ways[name] = how
	}
	for name, how := range ways {
		for of, methods := range map[string][]string{"ping": {"ping"}, "list": {"tools/list"}, "both": {"ping", "tools/list"}} {
			t.Run(name+", "+of, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSessions(says(404, "", ""))
					c, _ := s.dial(t)
					resume := c.Resume()
					require.NoError(t, c.Detach(t.Context()))
					refused := map[string]answering{}
					for _, method := range methods {
						refused[method] = how
					}
					s.answers(nil, refused)
					began := time.Now()
					again, err := s.bridge.Dial(t.Context(), dial.Request{Key: c.key, Resume: resume, Down: func(*mcpbridge.Error) {}})
					require.NoError(t, err)
					require.True(t, again.Info().Attached)
					require.LessOrEqual(t, time.Since(began), 2*time.Second)
					e, _ := do(again)
					require.Nil(t, e)
					require.NoError(t, again.Close(t.Context()))
					synctest.Wait()
					require.Zero(t, s.knows())
				})
			})
		}
	}
}

// C12: a front answers while the server restarts, and forgets its sessions.
func TestCallsWaitWhileAFrontAnswers(t *testing.T) {
	for name, forgets := range map[string]bool{"it knows the session": false, "it forgets it": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSessions(says(400, outbound.TypeJSON, failure("null", "-32000", "Bad Request: No valid session ID provided")))
				c, downs := s.dial(t)
				front := says(502, "text/html", "<html>Bad Gateway</html>")
				s.answers(nil, map[string]answering{"tools/call": front, "ping": front, "tools/list": front, rpc.MethodInitialize: front})
				e, _ := do(c)
				require.Equal(t, mcpbridge.Unheard, e.Session)
				require.True(t, e.MayHaveRun(), "it was sent, and is answered at once")

				requireWithheld := func(e *mcpbridge.Error) {
					require.Equal(t, mcpbridge.Error{Class: mcpbridge.Unavailable, Session: mcpbridge.Unheard, Withheld: true, Detail: "502 Bad Gateway"}, *e)
					require.False(t, e.MayHaveRun())
				}
				began := time.Now()
				e, _ = do(c)
				requireWithheld(e)
				require.Zero(t, time.Since(began), "a call that is not sent is answered at once, too")

				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := c.Do(ctx, new(messages.Open))
				requireWithheld(mcpbridge.AsError(err))
				require.NoError(t, ctx.Err())

				heard := make(chan *mcpbridge.Error)
				go func() {
					_, err := c.Do(t.Context(), new(messages.Open))
					heard <- mcpbridge.AsError(err)
				}()
				time.Sleep(10 * time.Second)
				require.LessOrEqual(t, s.count("ping"), 20)
				require.LessOrEqual(t, s.count(rpc.MethodInitialize), 10)
				require.LessOrEqual(t, s.count("tools/call"), 1, "what waits is not sent")
				s.answers(nil, nil)
				if forgets {
					s.forget()
				}
				began = time.Now()
				e = <-heard
				require.LessOrEqual(t, time.Since(began), 3*time.Second)
				if forgets {
					require.Equal(t, mcpbridge.NotSent, e.Class, "%v", e)
					require.Equal(t, mcpbridge.Gone, e.Session)
					require.Len(t, downs(), 1)
				} else {
					require.Nil(t, e)
					e, _ = do(c)
					require.Nil(t, e)
					require.Empty(t, downs())
				}
				require.NoError(t, c.Close(t.Context()))
				synctest.Wait()
				require.Zero(t, s.knows())
			})
		})
	}
}

// C12: a server refuses a call, and restarts behind a front. What it refused is not known any more when it is back.
func TestRefusalBeforeARestartIsJudgedWhenTheServerIsBack(t *testing.T) {
	for away, want := range map[time.Duration]mcpbridge.Error{
		3 * time.Second:  {Class: mcpbridge.Lost, Session: mcpbridge.Gone},
		10 * time.Second: {Class: mcpbridge.Lost, Session: mcpbridge.Unheard},
	} {
		t.Run(away.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSessions(says(400, outbound.TypeJSON, failure("null", "-32000", "Bad Request: No valid session ID provided")))
				c, downs := s.dial(t)
				front := says(502, "text/html", "<html>Bad Gateway</html>")
				s.answers(func(req *http.Request) (*http.Response, error) {
					s.forget()
					return says(422, "", "the amount is too large")(req)
				}, map[string]answering{"ping": front, "tools/list": front, rpc.MethodInitialize: front})
				time.AfterFunc(away, func() { s.answers(nil, nil) })
				began := time.Now()
				e, _ := do(c)
				require.Equal(t, want, mcpbridge.Error{Class: e.Class, Session: e.Session}, "%v", e)
				require.True(t, e.MayHaveRun())
				require.LessOrEqual(t, time.Since(began), verdictTimeout)
				_, err := c.Do(t.Context(), new(messages.Open))
				require.Equal(t, mcpbridge.Gone, mcpbridge.AsError(err).Session)
				require.LessOrEqual(t, time.Since(began), away+3*time.Second)
				require.Len(t, downs(), 1)
				require.NoError(t, c.Close(t.Context()))
				synctest.Wait()
				require.Zero(t, s.knows())
			})
		})
	}
}

// B6, C12: the stream of a session is refused first after its server has restarted, by a front or in other words than
// calls. No call is passed on as invalid for that.
func TestRefusalOfTheStreamCostsNoCall(t *testing.T) {
	for name, isBehindFront := range map[string]bool{"by the server": false, "by a front": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSessions(says(400, outbound.TypeJSON, failure("null", "-32000", "Bad Request: No valid session ID provided")))
				s.answers(nil, map[string]answering{http.MethodGet: breaks("")})
				c, downs := s.dial(t, func(srv *mcpbridge.Server) { srv.NoStream = false })
				s.forget()
				refused := make(chan struct{}, 100)
				stream := func(how answering) answering {
					return func(req *http.Request) (*http.Response, error) { refused <- struct{}{}; return how(req) }
				}
				inWords := stream(says(400, "", "Invalid or missing session ID"))
				if isBehindFront {
					front := answering(func(req *http.Request) (*http.Response, error) {
						time.Sleep(100 * time.Millisecond)
						return says(502, "text/html", "<html>Bad Gateway</html>")(req)
					})
					s.answers(nil, map[string]answering{"tools/call": front, "ping": front, "tools/list": front, rpc.MethodInitialize: front, http.MethodGet: stream(says(502, "", ""))})
					e, _ := do(c)
					require.Equal(t, mcpbridge.Unheard, e.Session)
					<-refused
					heard := make(chan *mcpbridge.Error)
					go func() {
						_, err := c.Do(t.Context(), new(messages.Open))
						heard <- mcpbridge.AsError(err)
					}()
					time.Sleep(time.Second)
					s.answers(nil, map[string]answering{http.MethodGet: inWords})
					<-heard
				} else {
					s.answers(nil, map[string]answering{http.MethodGet: inWords})
					<-refused
					time.Sleep(100 * time.Millisecond)
				}
				e, _ := do(c)
				require.Equal(t, mcpbridge.NotSent, e.Class, "%v", e)
				require.Equal(t, mcpbridge.Gone, e.Session)
				require.Len(t, downs(), 1)
				require.NoError(t, c.Close(t.Context()))
				synctest.Wait()
				require.Zero(t, s.knows())
			})
		})
	}
}

// C12: a server says "unknown session" with 503, as a front would.
func TestSessionThatIsRefusedLikeByAFrontIsFoundOutByTheControl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(says(503, "", "session is unknown on this API instance"))
		c, downs := s.dial(t)
		s.forget()
		e, _ := do(c)
		require.Equal(t, mcpbridge.Unheard, e.Session)
		began := time.Now()
		_, err := c.Do(t.Context(), new(messages.Open))
		e = mcpbridge.AsError(err)
		require.Equal(t, mcpbridge.NotSent, e.Class, "%v", e)
		require.Equal(t, mcpbridge.Gone, e.Session)
		require.LessOrEqual(t, time.Since(began), 4*time.Second)
		require.Len(t, downs(), 1)
		require.NoError(t, c.Close(t.Context()))
		synctest.Wait()
		require.Zero(t, s.knows())
	})
}

// C12: a route is missing for a moment, or one tool answers a page always. The session is kept, and the call may have
// run: so it is answered at once.
func TestPageInPlaceOfTheServersAnswerDoesNotEndASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(says(404, "", ""))
		c, downs := s.dial(t)
		page := says(404, "text/html", "<html><h1>404 Not Found</h1></html>")
		s.answers(nil, map[string]answering{"tools/call": page})
		e, _ := do(c)
		require.Equal(t, mcpbridge.ServerError, e.Class, "%v", e)
		require.Equal(t, mcpbridge.Unheard, e.Session)
		require.True(t, e.MayHaveRun())
		require.Equal(t, 1, s.count("tools/call"))
		s.answers(nil, nil)
		_, err := c.Do(t.Context(), new(messages.Open))
		require.NoError(t, err)
		e, _ = do(c)
		require.Nil(t, e)
		require.Empty(t, downs())
		require.NoError(t, c.Close(t.Context()))
	})
}

// H-B4: the verdict is for the text that was refused. Another text is asked about again.
func TestVerdictIsForOneText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(says(400, outbound.TypeJSON, failure("null", "-32000", "Bad Request: No valid session ID provided")))
		c, _ := s.dial(t)
		s.answers(says(400, outbound.TypeJSON, failure("null", "-32000", "the amount is too large")), nil)
		e, _ := do(c)
		require.Equal(t, mcpbridge.Invalid, e.Class)
		require.False(t, e.Doubt)
		s.answers(nil, nil)
		s.forget()
		e, _ = do(c)
		require.Equal(t, mcpbridge.Expired, e.Class, "%v", e)
		require.NoError(t, c.Close(t.Context()))
	})
}

// H-B3: a server without session ids forgets that it was initialized.
func TestSessionWithoutAnIDIsInitializedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var isInitialized atomic.Bool
		lists := says(200, outbound.TypeJSON, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`)
		server := answering(func(req *http.Request) (*http.Response, error) {
			req = readable(req)
			msg := rpc.Parse(rpc.BodyOf(req))
			switch {
			case msg.Method == rpc.MethodInitialize:
				isInitialized.Store(true)
				return lists(req)
			case !isInitialized.Load():
				return says(400, outbound.TypeJSON, failure("null", "-32000", "Bad Request: Server not initialized"))(req)
			case msg.Method == "tools/list":
				return says(200, outbound.TypeJSON, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`)(req)
			case msg.IsCall():
				return says(200, outbound.TypeJSON, done)(req)
			}
			return says(202, "", "")(req)
		})
		b := New([]mcpbridge.Server{{Name: "test", URL: "http://test/mcp", ProtocolVersion: protocolLegacy, NoStream: true, HTTPClient: &http.Client{Transport: server}}}, nil)
		defer b.Close()
		var downs atomic.Int32
		dial := func() dial.Conn {
			c, err := b.Dial(t.Context(), dial.Request{Key: messages.Key{Server: "test"}, Down: func(*mcpbridge.Error) { downs.Add(1) }})
			require.NoError(t, err)
			return c
		}
		c := dial()
		e, _ := do(c)
		require.Nil(t, e)
		isInitialized.Store(false)
		e, _ = do(c)
		require.Equal(t, mcpbridge.Expired, e.Class, "%v", e)
		require.EqualValues(t, 1, downs.Load())
		next := dial()
		e, _ = do(next)
		require.Nil(t, e)
		require.NoError(t, c.Close(t.Context()))
		require.NoError(t, next.Close(t.Context()))
	})
}

// A6: a session is closed while doubt about it is settled. The second session is ended before.
func TestClosingEndsWhatAnInquiryHasOpened(t *testing.T) {
	for after := time.Duration(0); after < 400*time.Millisecond; after += 20 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			s := newSessions(says(400, "", "no such session"))
			c, _ := s.dial(t, func(srv *mcpbridge.Server) {
				srv.HTTPClient = &http.Client{Transport: answering(func(req *http.Request) (*http.Response, error) {
					time.Sleep(30 * time.Millisecond)
					return s.RoundTrip(req)
				})}
			})
			s.forget()
			go do(c)
			time.Sleep(after)
			require.NoError(t, c.Close(t.Context()))
			require.Zero(t, s.knows(), "after %v", after)
			synctest.Wait()
		})
	}
}

// The dial that nobody wanted any longer, and the session actor that got its connection, both close it.
func TestSessionThatTwoCloseIsEndedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(says(404, "", ""))
		c, _ := s.dial(t)
		s.answers(nil, map[string]answering{http.MethodDelete: func(req *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return says(204, "", "")(req)
		}})
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { require.NoError(t, c.link.EndSession(t.Context())) })
		}
		both.Wait()
		require.Equal(t, 1, s.count(http.MethodDelete))
		require.NoError(t, c.Close(t.Context()))
	})
}

// A session that nobody will use is ended in a few attempts, and nothing waits after the last of them.
func TestSessionThatIsDiscardedIsEndedInAFewAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(says(404, "", ""))
		c, _ := s.dial(t)
		s.answers(nil, map[string]answering{http.MethodDelete: says(503, "", "")})
		began := time.Now()
		c.discard()
		require.Equal(t, 3, s.count(http.MethodDelete))
		require.Equal(t, 100*time.Millisecond, time.Since(began), "two pauses")
	})
}

// H-B12: a server gives all sessions the same id, so that the control makes the first known again, without its state.
func TestSessionWithTheIDOfTheControlHasExpired(t *testing.T) {
	for name, refusal := range map[string]answering{
		"400, text":   says(400, "", "no such session"),
		"404, own id": says(404, outbound.TypeJSON, failure("%s", "-32001", "Session not found")),
		"404, text":   says(404, "", "no such session"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSessions(refusal)
				s.sameID = true
				c, _ := s.dial(t)
				for range 3 {
					s.forget()
					e, _ := do(c)
					require.Equal(t, mcpbridge.Gone, e.Session, "%v", e)
					require.False(t, e.MayHaveRun(), "%v", e)
					synctest.Wait()
					old := c
					c = redial(t, s, c)
					require.NoError(t, old.Close(t.Context()))
					e, _ = do(c)
					require.Nil(t, e)
					require.Equal(t, 1, s.count(rpc.MethodInitialize))
				}
				require.NoError(t, c.Close(t.Context()))
				synctest.Wait()
				require.Zero(t, s.knows())
			})
		})
	}
}

// H-B12: the DELETE of one of these sessions would end all of them.
func TestSessionsWithOneIDAreEndedWithTheLastOfThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(says(400, "", "no such session"))
		s.sameID = true
		c, _ := s.dial(t)
		other, err := s.bridge.Dial(t.Context(), dial.Request{Key: messages.Key{Server: "test", Scope: "other"}, Down: func(*mcpbridge.Error) {}})
		require.NoError(t, err)
		refused := says(400, "", "every session is refused")
		s.answers(refused, map[string]answering{"ping": refused, "tools/list": refused})
		e, _ := do(c)
		require.Equal(t, mcpbridge.Alive, e.Session, "the control, too, which is discarded")
		s.answers(nil, nil)
		require.NoError(t, other.Close(t.Context()))
		e, _ = do(c)
		require.Nil(t, e)
		require.Zero(t, s.count(http.MethodDelete))
		require.NoError(t, c.Close(t.Context()))
		require.Equal(t, 1, s.count(http.MethodDelete))
		require.Zero(t, s.knows())
	})
}

// What a front answered before says nothing about the call once the server answers itself.
func TestPageOfAFrontIsNoEvidenceOnceTheServerIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(says(404, "", "no such session"))
		c, _ := s.dial(t)
		e, _ := do(c)
		require.Nil(t, e)
		page := says(404, "text/html", "<html>Not Found</html>")
		s.answers(nil, map[string]answering{"tools/call": page, "ping": page, "tools/list": page, rpc.MethodInitialize: page})
		waiting := make(chan *mcpbridge.Error)
		go func() {
			e, _ := do(c)
			waiting <- e
		}()
		time.Sleep(3 * time.Second) // longer than until a control is opened
		s.forget()
		s.answers(nil, nil)
		e = <-waiting
		require.True(t, e.MayHaveRun(), "%v", e)
		require.NoError(t, c.Close(t.Context()))
	})
}

// A server that takes any session id, and repeats it, does not change the id of the session.
func TestProofLeavesTheSessionItsID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(says(404, "", "no such session"))
		c, _ := s.dial(t)
		e, _ := do(c)
		require.Nil(t, e)
		first := c.Resume().SessionID
		dies := func(body string) answering {
			return func(req *http.Request) (*http.Response, error) {
				id := req.Header.Get(outbound.HeaderSession)
				if id == first {
					return says(400, "", "backend died")(req)
				}
				return says(200, outbound.TypeJSON, body, outbound.HeaderSession+": "+id)(req)
			}
		}
		s.answers(nil, map[string]answering{"tools/call": dies(done), "ping": dies(done), "tools/list": dies(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`)})
		e, _ = do(c)
		require.True(t, e.Session.HasEnded(), "%v", e)
		require.NoError(t, c.Close(t.Context()))
		time.Sleep(time.Minute)
		require.Zero(t, s.knows())
	})
}
