package login_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/internal/proof"
	"github.com/mcpactor/mcpactor/login"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// kept returns the record of a person who has logged in.
func kept(a *authority, s *site, expiry time.Time) *login.Record {
	return &login.Record{
		Server: s.URL + "/mcp", Resource: s.URL + "/mcp", Issuer: a.URL, Token: &oauth2.Token{AccessToken: "access-0", RefreshToken: "refresh-0", Expiry: expiry},
		Client: &oauth2.Config{ClientID: "kept", Endpoint: oauth2.Endpoint{TokenURL: a.URL + "/token", AuthStyle: oauth2.AuthStyleInParams}},
	}
}

func soon() time.Time { return time.Now().Add(time.Hour) }

// processes returns n logins that share a store, as processes do, and in which somebody has logged in.
func processes(t *testing.T, n int, r *login.Record) (all []*login.Login) {
	t.Helper()
	store := new(login.Memory)
	for range n {
		all = append(all, newLogin(t, login.Config{ID: "one", Store: store, Remedy: "log in"}))
	}
	require.NoError(t, all[0].Keep(t.Context(), r))
	return all
}

func TestOneOfAllRefreshesAToken(t *testing.T) {
	a := newAuthority(t)
	s := newSite(t, a.URL)
	all := processes(t, 8, kept(a, s, time.Now().Add(-time.Minute)))
	var group sync.WaitGroup
	for i, l := range slices.Concat(all, all) {
		group.Go(func() {
			if i%2 == 0 { // it dies before its time
				if err := authorize(t, l, s, 401, "access-0", ""); err != nil {
					t.Error(err)
				}
			}
			token, err := l.Token()
			if err != nil || token == nil || token.AccessToken != "access-1" {
				t.Error(token, err)
			}
		})
	}
	group.Wait()
	require.Len(t, a.requests(), 1)
	form := a.requests()[0]
	require.Equal(t, []string{"refresh_token", "refresh-0", s.URL + "/mcp", "kept"},
		[]string{form.Get("grant_type"), form.Get("refresh_token"), form.Get("resource"), form.Get("client_id")})
	r, err := all[7].Kept(t.Context())
	require.NoError(t, err)
	require.Equal(t, "refresh-1", r.Token.RefreshToken)
}

func TestAllSayAtOnceThatALoginHasEnded(t *testing.T) {
	a := newAuthority(t)
	s := newSite(t, a.URL)
	all := processes(t, 3, kept(a, s, soon()))
	a.accept = func(*http.Request) string { return "invalid_grant" }
	for _, l := range all {
		token, err := l.Token()
		require.NoError(t, err)
		require.Equal(t, "access-0", token.AccessToken)
	}
	for range 2 {
		for _, l := range all {
			err := authorize(t, l, s, 401, "access-0", "")
			require.ErrorIs(t, err, login.ErrNeeded)
			var e *mcpbridge.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, []string{"the login has expired", "log in"}, []string{e.Detail, e.Remedy})
		}
	}
	require.Len(t, a.requests(), 1)
}

func TestOutageDoesNotEndALogin(t *testing.T) {
	a := newAuthority(t)
	s := newSite(t, a.URL)
	all := processes(t, 1, kept(a, s, time.Now().Add(-time.Minute)))
	a.accept = func(*http.Request) string { return "temporarily_unavailable" }
	_, err := all[0].Token()
	require.ErrorContains(t, err, "the token could not be refreshed: the authorization server refuses: temporarily_unavailable")
	require.ErrorContains(t, err, "try again when the authorization server of "+first(s.refusal(t, 401, "", "")).URL.Host+" works")
	require.NotContains(t, err.Error(), "a secret of the server")
	a.accept = func(*http.Request) string { return "" }
	token, err := all[0].Token()
	require.NoError(t, err)
	require.Equal(t, "access-2", token.AccessToken)
}

func TestPersonIsAsked(t *testing.T) {
	a := newAuthority(t)
	s := newSite(t, a.URL)
	l := newLogin(t, login.Config{})
	require.ErrorContains(t, authorize(t, l, s, 401, "", ""), "nobody has logged in")
	require.NoError(t, l.Keep(t.Context(), kept(a, s, soon())))
	require.ErrorContains(t, authorize(t, l, s, 403, "access-0", `Bearer error="insufficient_scope", scope="a b"`), "the login lacks the scopes a b")
	token, err := l.Token()
	require.NoError(t, err)
	require.Equal(t, "access-0", token.AccessToken)

	found, err := l.Forget(t.Context())
	require.NoError(t, err)
	require.True(t, found)
	token, err = l.Token()
	require.NoError(t, err)
	require.Nil(t, token)
	found, err = l.Forget(t.Context())
	require.NoError(t, err)
	require.False(t, found)
}

func TestRefreshTokenGoesToNoServerThatIsNotUsedAnyLonger(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	s := newSite(t, other.URL)
	l := processes(t, 1, kept(a, s, soon()))[0]
	err := authorize(t, l, s, 401, "access-0", "")
	require.ErrorIs(t, err, login.ErrNeeded)
	require.ErrorContains(t, err, "the server uses another authorization server now: "+other.URL)
	require.Empty(t, a.requests())
	require.Empty(t, other.requests())
}

func TestTokensAreBoundToAKeyIfTheServerAsksForIt(t *testing.T) {
	for name, ask := range map[string]func(*site) string{
		"in a challenge":    func(*site) string { return `DPoP error="invalid_token"` },
		"in its metadata":   func(s *site) string { s.metadata["dpop_bound_access_tokens_required"] = true; return "" },
		"it does not":       func(*site) string { return `Bearer, DPoP` },
		"by another server": func(*site) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			s := newSite(t, a.URL)
			if name == "by another server" {
				a.accept = func(req *http.Request) string {
					if a.bound = req.Header.Get("DPoP") != ""; !a.bound {
						return "invalid_dpop_proof"
					}
					return ""
				}
			}
			a.bound = name != "it does not"
			l := newLogin(t, login.Config{Grant: login.ClientCredentials{Client: login.Client{ID: "me", Secret: "secret"}}})
			require.NoError(t, authorize(t, l, s, 401, "", ask(s)))
			_, key, err := l.BoundToken()
			require.NoError(t, err)
			if name == "it does not" {
				require.Nil(t, key)
				require.Empty(t, a.headers[0].Get("DPoP"))
				return
			}
			require.NotNil(t, key)
			last := len(a.headers) - 1
			claims := verify(t, a.headers[last].Get("DPoP"), key.Public())
			require.Equal(t, []any{"POST", a.URL + "/token"}, []any{claims["htm"], claims["htu"]})
			require.NoError(t, authorize(t, l, s, 401, fmt.Sprint("access-", last+1), ask(s)))
			_, again, err := l.BoundToken()
			require.NoError(t, err)
			require.Equal(t, key, again, "the key is that of the login")
		})
	}
}

func TestRefreshTokenIsBoundToTheKeyOfTheLogin(t *testing.T) {
	a := newAuthority(t)
	a.bound = true
	s := newSite(t, a.URL)
	r := kept(a, s, time.Now().Add(-time.Minute))
	key, err := proof.NewKey()
	require.NoError(t, err)
	r.Key, err = proof.FormatKey(key)
	require.NoError(t, err)
	l := processes(t, 1, r)[0]
	token, got, err := l.BoundToken()
	require.NoError(t, err)
	require.Equal(t, "DPoP", token.Type())
	require.Equal(t, key.Public(), got.Public())
	verify(t, a.headers[0].Get("DPoP"), key.Public())
}

// Files of version 0.2 have such records.
func TestRecordsOfEarlierVersionsAreRead(t *testing.T) {
	a := newAuthority(t)
	old := fmt.Sprintf(`{"Server":"https://s.example/mcp","Resource":"https://s.example/mcp","Client":{"ClientID":"c","ClientSecret":"","Endpoint":{"AuthURL":"","DeviceAuthURL":"",
		"TokenURL":%q,"AuthStyle":1},"RedirectURL":"http://127.0.0.1:1/callback","Scopes":["a"]},"Given":true,"Token":{"access_token":"old","refresh_token":"r","expiry":"2020-01-01T00:00:00Z"}}`, a.URL+"/token")
	store := new(login.Memory)
	claim, err := store.Claim(t.Context(), "one")
	require.NoError(t, err)
	require.NoError(t, claim.Save(t.Context(), []byte(old)))
	claim.Release()
	token, err := newLogin(t, login.Config{ID: "one", Store: store}).Token()
	require.NoError(t, err)
	require.Equal(t, "access-1", token.AccessToken)

	for garbage, want := range map[string]string{`{"Token": {"access_token": "secret"}}`: "it has no client", `{"Token": "secret`: "unexpected end of JSON input", `{"Client": {}, "Key": "secret"}`: "its key is none; log in again"} {
		claim, err := store.Claim(t.Context(), "two")
		require.NoError(t, err)
		require.NoError(t, claim.Save(t.Context(), []byte(garbage)))
		claim.Release()
		_, err = newLogin(t, login.Config{ID: "two", Store: store, Remedy: "log in again"}).Token()
		require.ErrorContains(t, err, "the login that is kept cannot be read: "+want)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestKeepNamesTheFieldThatIsWrong(t *testing.T) {
	token := &oauth2.Token{AccessToken: "access-0", RefreshToken: "refresh-0"}
	l := newLogin(t, login.Config{})
	for want, r := range map[string]*login.Record{
		"Record: is nil":                          nil,
		"Record: Client is nil":                   {Token: token},
		"Record: Token is nil":                    {Client: &oauth2.Config{ClientID: "kept"}},
		"Record: Client has no Endpoint.TokenURL": {Client: &oauth2.Config{ClientID: "kept"}, Token: token},
	} {
		require.ErrorContains(t, l.Keep(t.Context(), r), want)
		kept, err := l.Kept(t.Context())
		require.NoError(t, err)
		require.Nil(t, kept)
	}
	require.NoError(t, l.Keep(t.Context(), &login.Record{Machine: true, Client: &oauth2.Config{ClientID: "kept"}, Token: token}))
}

func TestRecordsDoNotShowTokens(t *testing.T) {
	r := &login.Record{Client: &oauth2.Config{ClientSecret: "hidden"}, Token: &oauth2.Token{AccessToken: "hidden"}, Key: json.RawMessage(`"hidden"`)}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		require.Equal(t, "a token that is hidden", fmt.Sprintf(format, r))
	}
	require.Equal(t, "no token", fmt.Sprint((*login.Record)(nil)))
}

func TestLoginsAreTheSameIfTheirConfigurationIs(t *testing.T) {
	cfg := func() login.Config {
		return login.Config{Scopes: []string{"a"}, Grant: login.ClientCredentials{Client: login.Client{ID: "me", Secret: "secret"}}}
	}
	one := newLogin(t, cfg())
	require.True(t, one.Equal(one))
	require.True(t, one.Equal(newLogin(t, cfg())))
	for _, change := range []func(*login.Config){
		func(c *login.Config) { c.Scopes = nil }, func(c *login.Config) { c.Grant = nil }, func(c *login.Config) { c.ID, c.Store = "x", new(login.Memory) },
		func(c *login.Config) { c.HTTPClient = new(http.Client) },
		func(c *login.Config) {
			c.Grant = login.ClientCredentials{Client: login.Client{ID: "me", Secret: "other"}}
		},
	} {
		other := cfg()
		change(&other)
		require.False(t, one.Equal(newLogin(t, other)))
	}
	store := new(login.Memory)
	require.True(t, newLogin(t, login.Config{ID: "x", Store: store}).Equal(newLogin(t, login.Config{ID: "x", Store: store})))
	require.False(t, newLogin(t, login.Config{ID: "x", Store: store}).Equal(newLogin(t, login.Config{ID: "y", Store: store})))

	server := func(cfg login.Config) *mcpbridge.Server {
		return &mcpbridge.Server{Name: "s", URL: "https://s.example/mcp", Auth: mcpbridge.OAuth(newLogin(t, cfg))}
	}
	require.True(t, server(cfg()).Same(server(cfg())), "it keeps its sessions")
	require.False(t, server(cfg()).Same(server(login.Config{})))
}
