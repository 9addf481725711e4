package bridge

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/messages"
)

// sets is a response with a cookie.
func sets(cookie string, how answering) answering {
	return func(req *http.Request) (*http.Response, error) {
		resp, err := how(req)
		if err == nil {
			resp.Header.Add("Set-Cookie", cookie)
		}
		return resp, err
	}
}

// carried returns the cookies of the requests, one after the other.
func (s *script) carried() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, req := range s.requests {
		all = append(all, req.Method+" "+req.Header.Get("Cookie"))
	}
	return all
}

// H-B7: a balancer with affinity by cookie finds the session's server again.
func TestCookiesGoWithEveryRequestOfTheirSession(t *testing.T) {
	s := newScript()
	s.answer(http.MethodGet, sets("pod=first-pod; Path=/; HttpOnly", says(405, "", "")))
	c := s.attach(t)
	s.answer("tools/call", says(307, "", "", "Location: /mcp/", "Set-Cookie: hop=1; Path=/mcp/"), sets("pod=other-pod; Path=/", works), works)
	for range 2 {
		e, _ := do(c)
		require.Nil(t, e)
	}
	require.Equal(t, "pod=other-pod", c.Resume().Cookies, "what is sent to the endpoint")
	require.NoError(t, c.Close(context.Background()))
	require.Equal(t, []string{
		"GET ", "POST pod=first-pod", "POST pod=first-pod", "POST hop=1; pod=first-pod", "POST pod=other-pod", "DELETE pod=other-pod",
	}, s.carried())
}

// They survive an attach, as they are, until the server sets them anew.
func TestCookiesOfARecordArePutBack(t *testing.T) {
	s := newScript()
	s.answer(http.MethodGet, says(405, "", ""))
	c := s.attach(t, func(_ *mcpbridge.Server, r *mcpbridge.Resume) { r.Cookies = `pod="a b"; b=2` })
	require.Equal(t, `pod="a b"; b=2`, c.Resume().Cookies)
	s.answer("tools/call", sets("pod=next; Path=/mcp", works), sets("b=; Max-Age=0", works), works)
	for range 3 {
		e, _ := do(c)
		require.Nil(t, e)
	}
	require.Equal(t, []string{`GET pod="a b"; b=2`, `POST pod="a b"; b=2`, `POST pod="a b"; b=2`, "POST pod=next; b=2", "POST pod=next"}, s.carried())
	require.NoError(t, c.Close(context.Background()))

	for _, garbage := range []string{"", ";", "\x00=a", "a", strings.Repeat("a=b; ", 100) + "c=d"} {
		c := newScript().attach(t, func(_ *mcpbridge.Server, r *mcpbridge.Resume) { r.Cookies = garbage })
		require.NotContains(t, c.Resume().Cookies, "c=d")
		require.NoError(t, c.Close(context.Background()))
	}
}

func TestCookiesOfASessionAreItsOwn(t *testing.T) {
	s := newScript().opening()
	n := 0
	s.answer(rpc.MethodDiscover, func(req *http.Request) (*http.Response, error) {
		n++
		return sets(fmt.Sprint("pod=", n), says(200, outbound.TypeJSON, failure("%s", "-32601", "no such method")))(req)
	})
	b := New([]mcpbridge.Server{{Name: "test", URL: "http://test/mcp", HTTPClient: &http.Client{Transport: s}}}, nil)
	for i := 1; i <= 2; i++ {
		c, err := b.Dial(t.Context(), dial.Request{Key: messages.Key{Server: "test", Scope: fmt.Sprint(i)}, Down: func(*mcpbridge.Error) {}})
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("pod=", n), c.Resume().Cookies)
		if i == 1 {
			b.servers["test"].dialect.forget() // asked again
		}
		require.NoError(t, c.Close(t.Context()))
	}
	require.Equal(t, 2, n)
}

func TestCookieIsInNoTextOfOurs(t *testing.T) {
	const secret = "hush-hush-hush"
	s := newScript()
	c := s.attach(t)
	s.answer("tools/call", sets("pod="+secret, works), says(400, "", "no such pod: "+secret), sets("pod=hush-hush-next", says(400, "", "use hush-hush-next, not "+secret)))
	do(c)
	for range 2 {
		e, _ := do(c)
		require.NotContains(t, e.Error(), "hush")
	}
	record := mcpbridge.Record{Resume: *c.Resume(), Generation: 1}
	require.Contains(t, record.Cookies, "hush")
	for _, text := range []string{
		record.String(), fmt.Sprintf("%v %+v %#v %s %q", record, record, record, record, record), record.LogValue().String(),
		record.Resume.String(), fmt.Sprintf("%v %+v %#v", record.Resume, record.Resume, &record.Resume), record.Resume.LogValue().String(),
	} {
		require.NotContains(t, text, "hush")
		require.NotContains(t, text, testSession)
	}
	require.NoError(t, c.Close(context.Background()))
}
