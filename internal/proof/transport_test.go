package proof

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/proof/prooftest"
)

// authority is an authorization server that checks proofs.
type authority struct {
	*httptest.Server
	check    prooftest.Checker
	optional bool   // it takes requests without proofs, too
	used     string // the assertion of the last request, which is taken once

	mu    sync.Mutex
	posts int
}

func newAuthority(t *testing.T) *authority {
	a := new(authority)
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	a.check.Origin = a.URL
	return a
}

func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Method == http.MethodGet {
		if r.Header.Get("DPoP") != "" {
			http.Error(w, "a proof for a GET", http.StatusBadRequest)
		}
		w.Header().Set("Date", time.Now().Add(a.check.Ahead).UTC().Format(http.TimeFormat))
		return
	}
	a.posts++
	proves := r.Header.Get("DPoP") != ""
	used := r.FormValue("client_assertion")
	if used != "" && used == a.used {
		http.Error(w, `{"error":"invalid_client"}`, http.StatusUnauthorized)
		return
	}
	a.used = used
	thumbprint, code := "", ""
	if proves || !a.optional {
		thumbprint, code = a.check.Check(w, r, "")
	}
	if code != "" {
		http.Error(w, fmt.Sprintf(`{"error":%q}`, code), http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "%s %s", r.FormValue("grant_type"), thumbprint)
}

// post sends a token request, and returns its answer.
func post(t *testing.T, through *Transport, to string) (int, string) {
	t.Helper()
	resp, err := (&http.Client{Transport: through}).PostForm(to, url.Values{"grant_type": {"refresh_token"}})
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func TestTokenRequestsCarryProofsOnceTheyAreAskedFor(t *testing.T) {
	key, err := NewKey()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		server func(*authority)
		asked  bool
		posts  []int // after each request
		bound  bool
	}{
		"nobody asks":             {func(a *authority) { a.optional = true }, false, []int{1, 2}, false},
		"the MCP server asks":     {func(*authority) {}, true, []int{1, 2}, true},
		"though it is optional":   {func(a *authority) { a.optional = true }, true, []int{1, 2}, true},
		"it asks itself":          {func(*authority) {}, false, []int{2, 3}, true},
		"it wants its last nonce": {func(a *authority) { a.check.Nonces = 1 }, true, []int{2, 3}, true},
		"both":                    {func(a *authority) { a.check.Nonces = 1 }, false, []int{2, 3}, true},
		"its clock is ahead":      {func(a *authority) { a.check.Ahead = 5 * time.Minute }, true, []int{2, 3}, true},
		"its clock is behind":     {func(a *authority) { a.check.Ahead = -5 * time.Minute }, false, []int{2, 3}, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			c.server(a)
			through := &Transport{Key: key, Asked: c.asked}
			for _, posts := range c.posts {
				status, body := post(t, through, a.URL+"/token?x=y")
				require.Equal(t, 200, status, "%s: %v", body, a.check.Err())
				require.Equal(t, c.bound, len(body) > len("refresh_token "), body)
				require.Equal(t, posts, a.posts)
			}
		})
	}
}

func TestMetadataTellTheTime(t *testing.T) {
	key, err := NewKey()
	require.NoError(t, err)
	a := newAuthority(t)
	a.check.Ahead = -time.Hour
	through := &Transport{Key: key, Asked: true}
	resp, err := (&http.Client{Transport: through}).Get(a.URL + "/metadata")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 200, resp.StatusCode)
	require.WithinDuration(t, time.Now().Add(-time.Hour), through.Server(a.URL+"/token").Now(), 10*time.Second)
	require.WithinDuration(t, time.Now(), through.Server("https://another.test").Now(), 10*time.Second)
	status, body := post(t, through, a.URL+"/token")
	require.Equal(t, 200, status, body)
	require.Equal(t, 1, a.posts)
}

func TestWhatDoesNotHelpIsNotRepeated(t *testing.T) {
	key, err := NewKey()
	require.NoError(t, err)
	long := `{"error":"invalid_dpop_proof","why":"` + strings.Repeat("x", maxRefusal) + `"}`
	for name, c := range map[string]struct {
		status int
		body   string
		nonce  string // n is another one each time
		posts  int
	}{
		"another error":          {400, `{"error":"invalid_grant"}`, "n", 1},
		"no JSON":                {400, "use_dpop_nonce", "n", 1},
		"another status":         {403, `{"error":"use_dpop_nonce"}`, "n", 1},
		"a long body":            {400, long, "n", 1},
		"no other nonce":         {400, `{"error":"use_dpop_nonce"}`, "", 1},
		"the second refusal":     {400, `{"error":"use_dpop_nonce"}`, "n", 2},
		"the second, with a 401": {401, `{"error":"invalid_dpop_proof"}`, "n", 2},
	} {
		t.Run(name, func(t *testing.T) {
			posts := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				posts++
				if c.nonce != "" {
					w.Header().Set("DPoP-Nonce", fmt.Sprint(c.nonce, posts))
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			}))
			defer server.Close()
			status, body := post(t, &Transport{Key: key, Asked: true}, server.URL)
			require.Equal(t, c.status, status)
			require.Equal(t, c.body, body, "the caller reads all of it")
			require.Equal(t, c.posts, posts)

			posts = 0
			status, _ = post(t, &Transport{Asked: true}, server.URL)
			require.Equal(t, c.status, status)
			require.Equal(t, 1, posts, "there is no key")

			posts = 0
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, io.MultiReader(strings.NewReader("x")))
			require.NoError(t, err)
			resp, err := (&Transport{Key: key}).RoundTrip(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, 1, posts, "its body cannot be read again")
		})
	}
}

func TestAssertionIsRenewedForTheSecondRequest(t *testing.T) {
	key, err := NewKey()
	require.NoError(t, err)
	a := newAuthority(t)
	a.check.Nonces = 1
	through := &Transport{Key: key, Asked: true}
	form := url.Values{"grant_type": {"client_credentials"}, "client_assertion": {"first"}}
	send := func() (string, error) {
		a.used = ""
		resp, err := (&http.Client{Transport: through}).PostForm(a.URL, form)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return string(body), err
	}
	body, err := send()
	require.NoError(t, err)
	require.Contains(t, body, "invalid_client")

	through = &Transport{Key: key, Asked: true, Renew: func(form url.Values) error {
		form.Set("client_assertion", "second, which is longer")
		return nil
	}}
	body, err = send()
	require.NoError(t, err)
	require.Contains(t, body, "client_credentials ")
	require.Equal(t, "second, which is longer", a.used)

	lost := errors.New("the key is lost")
	through = &Transport{Key: key, Asked: true, Renew: func(url.Values) error { return lost }}
	_, err = send()
	require.ErrorIs(t, err, lost)

	through = &Transport{Key: noSigner{}, Asked: true}
	_, err = send()
	require.ErrorContains(t, err, "no JWT can be signed")
}

func TestManyTokenRequestsAtOnce(t *testing.T) {
	key, err := NewKey()
	require.NoError(t, err)
	a := newAuthority(t)
	a.check.Nonces, a.check.Ahead = 1000, 5*time.Minute
	through := &Transport{Key: key}
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			resp, err := (&http.Client{Transport: through}).PostForm(a.URL+"/token", url.Values{"grant_type": {"refresh_token"}})
			if err != nil || resp.StatusCode != 200 {
				t.Error(err, resp)
			}
			if err == nil {
				resp.Body.Close()
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, a.posts, 64)
}

func TestServerAsksForBoundTokens(t *testing.T) {
	for said, want := range map[string]struct{ asks, refuses bool }{
		`DPoP`:                        {true, false},
		`dpop algs="ES256 PS256"`:     {true, false},
		`Bearer realm="x"`:            {},
		`Bearer realm="x", DPoP`:      {},
		`DPoP algs="ES256", Bearer`:   {},
		`Basic realm="DPoP, DPoP"`:    {},
		`Negotiate a!b, Bearer="`:     {},
		`DPoP error="use_dpop_nonce"`: {true, true},
		`DPoP error=use_dpop_nonce`:   {true, true},
		`DPoP error="invalid_token"`:  {true, false},
		`Bearer error=use_dpop_nonce`: {},
		`Bearer error="invalid_token", DPoP algs="ES256", error="invalid_dpop_proof"`: {false, true},
	} {
		h := http.Header{"Www-Authenticate": {`Negotiate "`, said}}
		require.Equal(t, want.asks, Asks(h), said)
		require.Equal(t, want.refuses, Refuses(h), said)
	}
	require.False(t, Asks(nil))
}

func FuzzChallenges(f *testing.F) {
	f.Add(`DPoP error="use_dpop_nonce"`)
	f.Add(`Bearer error="invalid_token", DPoP algs="ES256"`)
	f.Fuzz(func(t *testing.T, said string) {
		h := http.Header{"Www-Authenticate": {said}}
		if (Asks(h) || Refuses(h)) && !strings.Contains(strings.ToLower(said), "dpop") {
			t.Error(said)
		}
	})
}
