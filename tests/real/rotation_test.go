//go:build real

package real

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// several are processes with one login.
type several []*lines

// several starts processes that use the login of now.
func (o *hosted) several(n int) (all several) {
	o.t.Helper()
	for range n {
		all = append(all, o.exec())
	}
	for _, answer := range all.call(o) {
		require.Contains(o.t, answer, `"`+account+`"`)
	}
	return all
}

// call has all processes call the tool at once, and returns the answers.
func (s several) call(o *hosted) []string {
	o.t.Helper()
	answers, errs := make([]string, len(s)), make([]error, len(s))
	var all sync.WaitGroup
	for i, l := range s {
		all.Go(func() { answers[i], errs[i] = l.call() })
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(o.t, err)
	}
	return answers
}

// needLogin checks that each process says that a login is needed.
func (s several) needLogin(o *hosted) {
	o.t.Helper()
	for _, answer := range s.call(o) {
		require.Contains(o.t, answer, `"code":"unauthorized"`)
		require.Contains(o.t, answer, "run: mcpactor login --config "+o.config+" hosted")
	}
}

// end ends the processes.
func (s several) end(o *hosted) {
	o.t.Helper()
	for _, l := range s {
		l.end() // with an error, if a call has failed
		require.NotContains(o.t, l.log.String(), "panic")
	}
}

func TestTokensThatDieEarlyAreRefreshedOnceForAllProcesses(t *testing.T) {
	o := newHosted(t, hosting{})
	stderr, _, status := o.login(nil)
	require.Zero(t, status, stderr)
	all := o.several(4)
	for round := range 3 {
		o.refused.Store(o.kept().Token.Access, true)
		for _, answer := range all.call(o) {
			require.Contains(t, answer, `"`+account+`"`)
		}
		require.Equal(t, round+1, o.authority().asked("refresh_token"))
	}
	all.end(o)
}

// Somebody who has copied a refresh token uses it first. The authorization server then ends the login.
func TestLoginWhoseRefreshTokenIsReplayedEndsForAllProcesses(t *testing.T) {
	o := newHosted(t, hosting{})
	stderr, _, status := o.login(nil)
	require.Zero(t, status, stderr)
	all := o.several(4)
	login := o.kept()
	stolen, err := o.authority().post(t.Context(), "/token", url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {login.Token.Refresh}, "client_id": {login.Client.ClientID}, "resource": {o.url},
	})
	require.NoError(t, err)
	require.NotEmpty(t, stolen["access_token"])
	o.refused.Store(login.Token.Access, true)
	all.needLogin(o)
	require.Equal(t, 2, o.authority().asked("refresh_token"), "the thief, and one for all processes")
	said, err := o.introspect(t.Context(), stolen["access_token"].(string))
	require.NoError(t, err)
	require.False(t, said["active"].(bool))

	stderr, _, status = o.login(nil)
	require.Zero(t, status, stderr)
	for _, answer := range all.call(o) {
		require.Contains(t, answer, `"`+account+`"`)
	}
	all.end(o)
}

// The first process is killed while it waits for the answer to a refresh. What the authorization server makes of the second use of
// the token depends on whether it has the first.
func TestRefreshOfAProcessThatIsKilledIsTriedOnce(t *testing.T) {
	for name, arrives := range map[string]bool{"the refresh has arrived": true, "the refresh has not arrived": false} {
		t.Run(name, func(t *testing.T) {
			o := newHosted(t, hosting{})
			stderr, _, status := o.login(nil)
			require.Zero(t, status, stderr)
			all := o.several(4)
			sent := make(chan struct{})
			o.authority().answer(func(_ http.ResponseWriter, r *http.Request, _ url.Values) {
				if arrives {
					o.authority().passed.ServeHTTP(httptest.NewRecorder(), r)
				}
				close(sent)
				<-r.Context().Done() // the process is dead
			})
			o.refused.Store(o.kept().Token.Access, true)
			var killed sync.WaitGroup
			killed.Go(func() { all[0].call() })
			<-sent
			o.authority().answer(nil)
			require.NoError(t, all[0].cmd.Process.Kill())
			killed.Wait()
			all[0].end()
			if arrives {
				all[1:].needLogin(o)
				all[1:].needLogin(o)
			} else {
				for _, answer := range all[1:].call(o) {
					require.Contains(t, answer, `"`+account+`"`)
				}
			}
			require.Equal(t, 2, o.authority().asked("refresh_token"))
			all[1:].end(o)
		})
	}
}

// Neither the refresh token nor the secret of the old authorization server is told to the new one, which somebody else may have put
// into the metadata.
func TestServerThatChangesItsAuthorizationServerNeedsALogin(t *testing.T) {
	const secret = "secret-of-the-confidential-client"
	o := newHosted(t, hosting{provider: provider{Clients: []map[string]any{{
		"client_id": "confidential", "client_secret": secret, "redirect_uris": []string{"http://127.0.0.1/callback"}, "application_type": "native",
		"grant_types": []string{"authorization_code", "refresh_token"},
	}}}})
	o.env = append(o.env, "MCPACTOR_CLIENT_SECRET="+secret)
	stderr, _, status := o.login(nil, "--client-id", "confidential")
	require.Zero(t, status, stderr)
	o.env = o.env[:len(o.env)-1]
	old := o.kept()
	all := o.several(2)
	first := o.authority()
	o.move(provider{})
	for _, answer := range all.call(o) {
		require.Contains(t, answer, `"code":"unauthorized"`)
		require.Contains(t, answer, "authorization server")
		require.Contains(t, answer, o.authority().URL)
		require.Contains(t, answer, "run: mcpactor login --config "+o.config+" hosted")
	}
	require.LessOrEqual(t, first.asked("refresh_token"), 1)

	stderr, _, status = o.login(nil)
	require.Zero(t, status, stderr)
	for _, answer := range all.call(o) {
		require.Contains(t, answer, `"`+account+`"`)
	}
	header := base64.StdEncoding.EncodeToString([]byte("confidential:" + secret))
	require.True(t, first.heard(secret) || first.heard(header))
	for _, text := range []string{old.Token.Refresh, secret, header} {
		require.False(t, o.authority().heard(text), "the new one was told a secret of the old one")
	}
	all.end(o)
}

// An authorization server that is down, or says nothing that is an answer, ends no login.
func TestLoginOutlivesAnOutageOfTheAuthorizationServer(t *testing.T) {
	o := newHosted(t, hosting{})
	stderr, _, status := o.login(nil)
	require.Zero(t, status, stderr)
	all := o.several(2)
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request, form url.Values){
		"down": func(w http.ResponseWriter, _ *http.Request, _ url.Values) {
			http.Error(w, "down", http.StatusServiceUnavailable)
		},
		"busy": func(w http.ResponseWriter, _ *http.Request, _ url.Values) {
			http.Error(w, "busy", http.StatusTooManyRequests)
		},
		"no token":  func(w http.ResponseWriter, _ *http.Request, _ url.Values) { w.Write([]byte("{}")) },
		"no answer": func(http.ResponseWriter, *http.Request, url.Values) { panic(http.ErrAbortHandler) },
	} {
		o.refused.Store(o.kept().Token.Access, true)
		o.authority().answer(answer)
		for _, answer := range all.call(o) {
			require.Contains(t, answer, "the token could not be refreshed", name)
			require.Contains(t, answer, "try again when the authorization server of ")
		}
		o.authority().answer(nil)
		for _, answer := range all.call(o) {
			require.Contains(t, answer, `"`+account+`"`, name)
		}
	}
	all.end(o)
}
