package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/oauthresource"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

var (
	past   = time.Now().Add(-time.Hour)
	future = time.Now().Add(time.Hour)
)

// remedyOf returns the detail and the remedy of an error.
func remedyOf(t *testing.T, err error) (detail, remedy string) {
	t.Helper()
	var e *mcpbridge.Error
	require.ErrorAs(t, err, &e)
	return e.Detail, e.Remedy
}

func TestPersonLogsInAndTheLoginIsKept(t *testing.T) {
	s := newScripted(t)
	page := make(chan string, 1)
	person := &screen{open: func(address *url.URL) {
		require.Equal(t, "S256", address.Query().Get("code_challenge_method"))
		require.ElementsMatch(t, []string{"read", "write", "extra"}, strings.Fields(address.Query().Get("scope")))
		page <- back(t, address, url.Values{"code": {"the-code"}})
	}}
	l := s.login(t, Options{Asking: Waiting, Err: person, Timeout: time.Minute, Scopes: []string{"extra"}})
	token, err := l.Token()
	require.NoError(t, err)
	require.Nil(t, token)
	require.NoError(t, s.refuse(t, l, http.StatusUnauthorized, ""))
	require.Equal(t, "You are logged in. You can close this window.\n", <-page)
	require.True(t, l.Worked())
	require.True(t, s.isKept())
	token, err = l.Token()
	require.NoError(t, err)
	require.Equal(t, "access-1", token.AccessToken)
	require.NotContains(t, person.String(), "access-1")
	form := s.requests()[0]
	require.Equal(t, s.url(), form.Get("resource"))
	require.NotEmpty(t, form.Get("code_verifier"))

	other := s.login(t, Options{})
	token, err = other.Token()
	require.NoError(t, err)
	require.Equal(t, "access-1", token.AccessToken)

	found, err := Forget(s.url())
	require.NoError(t, err)
	require.True(t, found)
	found, err = Forget(s.url())
	require.NoError(t, err)
	require.False(t, found)
}

// The authorization server gets the resource that the metadata names, also when a token is refreshed.
func TestResourceOfTheMetadataIsThatOfTheLogin(t *testing.T) {
	s := newScripted(t)
	s.resource = s.URL
	person := &screen{open: func(address *url.URL) { go back(t, address, url.Values{"code": {"the-code"}}) }}
	l := s.login(t, Options{Asking: Waiting, Err: person, Timeout: time.Minute})
	require.NoError(t, s.refuse(t, l, http.StatusUnauthorized, ""))
	require.Contains(t, person.String(), "resource="+url.QueryEscape(s.URL)+"&")
	require.NoError(t, s.refuse(t, l, http.StatusUnauthorized, "access-1"))
	for _, form := range s.requests() {
		require.Equal(t, s.URL, form.Get("resource"))
	}
	require.Len(t, s.requests(), 2)

	s.resource = "https://elsewhere.example.com/mcp"
	denies := &screen{open: func(address *url.URL) { go back(t, address, url.Values{"error": {"access_denied"}}) }}
	other := s.login(t, Options{Asking: Waiting, Err: denies, Timeout: time.Minute})
	detail, _ := remedyOf(t, s.refuse(t, other, http.StatusUnauthorized, ""))
	require.Contains(t, detail, "the metadata of the server is for the resource https://elsewhere.example.com/mcp, and not for its URL")
}

// A call that needs more gets more.
func TestScopesOfAFileRestrictTheLogin(t *testing.T) {
	for status, want := range map[int]string{http.StatusUnauthorized: "scope=read&", http.StatusForbidden: "scope=files%3Awrite&"} {
		s := newScripted(t)
		person := &screen{open: func(address *url.URL) { go back(t, address, url.Values{"code": {"the-code"}}) }}
		l := s.login(t, Options{Asking: Waiting, Err: person, Timeout: time.Minute, Only: []string{"read"}})
		require.NoError(t, s.refuse(t, l, status, ""))
		require.Contains(t, person.String(), want)
	}
}

func TestLoginIsOfferedWhereTheServerHasOne(t *testing.T) {
	s := newScripted(t)
	person := &screen{open: func(address *url.URL) { back(t, address, url.Values{"code": {"the-code"}}) }}
	l := s.login(t, Options{Asking: Waiting, Err: person, Timeout: time.Minute})
	offered, err := l.Offer(t.Context())
	require.NoError(t, err)
	require.True(t, offered)
	require.True(t, s.isKept())

	l, err = New(s.URL+"/other", Options{Asking: Waiting, Err: person, Timeout: time.Minute})
	require.NoError(t, err)
	offered, err = l.Offer(t.Context())
	require.NoError(t, err)
	require.False(t, offered)
}

func TestWithoutALoginThePersonIsToldWhatToDo(t *testing.T) {
	s := newScripted(t)
	l := s.login(t, Options{Remedy: "run: mcpactor login hosted"})
	detail, remedy := remedyOf(t, s.refuse(t, l, http.StatusUnauthorized, ""))
	require.Equal(t, "nobody has logged in", detail)
	require.Equal(t, "run: mcpactor login hosted", remedy)
	detail, _ = remedyOf(t, s.refuse(t, l, http.StatusForbidden, "token"))
	require.Equal(t, "the login lacks the scopes files:write", detail)
	require.Empty(t, s.requests())
}

func TestOneOfAllProcessesRefreshesAToken(t *testing.T) {
	s := newScripted(t)
	s.keep(t, "old", past)
	var all sync.WaitGroup
	for range 8 {
		l := s.login(t, Options{})
		all.Go(func() {
			token, err := l.Token()
			if err != nil || token == nil || token.AccessToken != "access-1" {
				t.Error(token, err)
			}
		})
	}
	all.Wait()
	require.Len(t, s.requests(), 1)
	form := s.requests()[0]
	require.Equal(t, "refresh-old", form.Get("refresh_token"))
	require.Equal(t, "refresh_token", form.Get("grant_type"))
	require.Equal(t, s.url(), form.Get("resource"))
}

func TestTokenThatTheServerRefusesIsRefreshedUnlessAnotherProcessHas(t *testing.T) {
	s := newScripted(t)
	s.keep(t, "first", future)
	l := s.login(t, Options{})
	token, err := l.Token()
	require.NoError(t, err)
	require.Equal(t, "first", token.AccessToken)

	s.keep(t, "second", future)
	require.NoError(t, s.refuse(t, l, http.StatusUnauthorized, "first"))
	require.Empty(t, s.requests())
	token, err = l.Token()
	require.NoError(t, err)
	require.Equal(t, "second", token.AccessToken)

	require.NoError(t, s.refuse(t, l, http.StatusUnauthorized, "second"))
	require.Len(t, s.requests(), 1)
	token, err = l.Token()
	require.NoError(t, err)
	require.Equal(t, "access-1", token.AccessToken)
}

// Some authorization servers never change the refresh token, and name it once.
func TestRefreshTokenThatIsNotRepeatedIsKept(t *testing.T) {
	s := newScripted(t)
	s.answer = func(w http.ResponseWriter, _ url.Values) {
		reply(w, 200, map[string]any{"access_token": "new", "token_type": "Bearer", "expires_in": 1}) // which is over at once
	}
	s.keep(t, "old", past)
	l := s.login(t, Options{})
	for range 2 {
		token, err := l.Token()
		require.NoError(t, err)
		require.Equal(t, "new", token.AccessToken)
	}
	for _, form := range s.requests() {
		require.Equal(t, "refresh-old", form.Get("refresh_token"))
	}
	require.Len(t, s.requests(), 2)
}

func TestRefusalToRefreshEndsTheLogin(t *testing.T) {
	s := newScripted(t)
	s.keep(t, "old", past)
	s.answer = func(w http.ResponseWriter, _ url.Values) {
		reply(w, 400, map[string]any{"error": "invalid_grant", "error_description": "hush"})
	}
	l := s.login(t, Options{Remedy: "run: mcpactor login"})
	for range 3 {
		token, err := l.Token()
		require.NoError(t, err)
		require.Nil(t, token)
	}
	require.Len(t, s.requests(), 1, "a refresh token that was refused is not used again")
	require.False(t, s.isKept())
	_, remedy := remedyOf(t, s.refuse(t, l, http.StatusUnauthorized, "old"))
	require.Equal(t, "run: mcpactor login", remedy)
}

func TestOutageOfTheAuthorizationServerDoesNotEndTheLogin(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter, url.Values){
		"503": func(w http.ResponseWriter, f url.Values) {
			http.Error(w, f.Get("refresh_token"), http.StatusServiceUnavailable)
		},
		"unavailable": func(w http.ResponseWriter, _ url.Values) {
			reply(w, 400, map[string]any{"error": "temporarily_unavailable"})
		},
		"garbage": func(w http.ResponseWriter, f url.Values) { reply(w, 200, f.Get("refresh_token")) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScripted(t)
			s.keep(t, "old", past)
			works := s.answer
			s.answer = answer
			l := s.login(t, Options{})
			_, err := l.Token()
			detail, remedy := remedyOf(t, err)
			require.NotContains(t, detail, "refresh-old")
			require.Contains(t, remedy, "try again when the authorization server of")
			require.True(t, s.isKept())
			s.answer = works
			token, err := l.Token()
			require.NoError(t, err)
			require.NotNil(t, token)
		})
	}
}

func TestTokensAreNotSentToAnotherAddress(t *testing.T) {
	s := newScripted(t)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { t.Error(req.URL) }))
	t.Cleanup(elsewhere.Close)
	s.keep(t, "old", past)
	s.answer = func(w http.ResponseWriter, _ url.Values) {
		w.Header().Set("Location", elsewhere.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
	_, err := s.login(t, Options{}).Token()
	require.Error(t, err)
}

// The client that the SDK gets has its own CheckRedirect, which takes the place of the SDK's.
func TestMetadataIsNotLookedForElsewhereOnThisMachine(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { t.Error(req.URL) }))
	t.Cleanup(elsewhere.Close)
	s := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusFound))
	t.Cleanup(s.Close)
	resp, err := oauthresource.Web.Get(s.URL)
	require.ErrorContains(t, err, "another origin without https")
	if resp != nil {
		resp.Body.Close()
	}
}

func TestAnswersOfTheBrowserAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		answer url.Values
		want   string
	}{
		"another issuer": {url.Values{"code": {"x"}, "iss": {"https://elsewhere.example"}}, "does not match expected issuer"},
		"a refusal":      {url.Values{"error": {"access_denied"}, "error_description": {"hush"}}, "the authorization server refuses: access_denied"},
		"a strange one":  {url.Values{"error": {"\x1b[2J hush"}}, "the authorization server refuses"},
		"no code":        {url.Values{}, "the authorization server refuses"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScripted(t)
			page := make(chan string, 1)
			person := &screen{open: func(address *url.URL) { page <- back(t, address, c.answer) }}
			l := s.login(t, Options{Asking: Waiting, Err: person, Timeout: time.Minute, Remedy: "try again"})
			detail, remedy := remedyOf(t, s.refuse(t, l, http.StatusUnauthorized, ""))
			require.Contains(t, detail, c.want)
			require.NotContains(t, detail, "hush")
			require.Equal(t, "try again", remedy)
			require.NotContains(t, <-page, "You are logged in")
			require.Empty(t, s.requests())
			require.False(t, l.Worked())
			require.False(t, s.isKept())
		})
	}
}

// RFC 9207: the answer names its issuer if the metadata says so, and no other one in any case.
func TestIssuerOfAnAnswerIsChecked(t *testing.T) {
	for _, c := range []struct {
		advertised, sent, wrong bool
		want                    string
	}{
		{want: ""},
		{sent: true, want: ""},
		{advertised: true, sent: true, want: ""},
		{advertised: true, want: "none was received"},
		{advertised: true, sent: true, wrong: true, want: "does not match expected issuer"},
		{sent: true, wrong: true, want: "does not match expected issuer"},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			s := newScripted(t)
			s.metadata = map[string]any{"authorization_response_iss_parameter_supported": c.advertised}
			answer := url.Values{"code": {"the-code"}}
			if c.sent {
				answer.Set("iss", s.URL)
			}
			if c.wrong {
				answer.Set("iss", s.URL+"/other")
			}
			person := &screen{open: func(address *url.URL) { back(t, address, answer) }}
			err := s.refuse(t, s.login(t, Options{Asking: Waiting, Err: person, Timeout: time.Minute}), http.StatusUnauthorized, "")
			if c.want == "" {
				require.NoError(t, err)
				require.Equal(t, s.URL, s.record(t).Issuer)
				return
			}
			require.ErrorContains(t, err, c.want)
			require.Empty(t, s.requests(), "no code is sent")
			require.False(t, s.isKept())
		})
	}
}

func TestStepUpKeepsThePermissionsOfBefore(t *testing.T) {
	s := newScripted(t)
	r := s.logIn(t, Options{Only: []string{"read"}, ClientID: "mine"})
	require.NoError(t, r.err)
	require.Equal(t, []string{"read"}, r.kept.Client.Scopes)
	addresses := make(chan *url.URL, 1)
	person := &screen{open: func(address *url.URL) {
		addresses <- address
		back(t, address, url.Values{"code": {"the-code"}})
	}}
	l := s.login(t, Options{Asking: Waiting, Err: person, Timeout: time.Minute})
	require.NoError(t, s.refuse(t, l, http.StatusForbidden, "access-1"))
	query := (<-addresses).Query()
	require.ElementsMatch(t, []string{"read", "files:write"}, strings.Fields(query.Get("scope")))
	require.Equal(t, "mine", query.Get("client_id"))
	for _, form := range append(s.requests(), query) {
		require.Equal(t, s.url(), form.Get("resource"), "RFC 8707")
	}
	require.ElementsMatch(t, []string{"read", "files:write"}, s.record(t).Client.Scopes)
}

func TestAnswerWithAnotherStateChangesNothing(t *testing.T) {
	s := newScripted(t)
	page := make(chan string, 3)
	person := &screen{open: func(address *url.URL) {
		page <- back(t, address, url.Values{"code": {"x"}, "state": {"guessed"}})
		page <- back(t, address, url.Values{"error": {"access_denied"}, "state": {""}})
		page <- back(t, address, url.Values{"code": {"the-code"}})
	}}
	l := s.login(t, Options{Asking: Waiting, Err: person, Timeout: time.Minute})
	require.NoError(t, s.refuse(t, l, http.StatusUnauthorized, ""))
	for range 2 {
		require.Contains(t, <-page, "no answer to the login")
	}
	require.Contains(t, <-page, "You are logged in")
	require.Equal(t, "the-code", s.requests()[0].Get("code"))
}

func TestLoginEndsWithItsContext(t *testing.T) {
	s := newScripted(t)
	ctx, cancel := context.WithCancel(t.Context())
	l := s.login(t, Options{Asking: Waiting, Err: &screen{open: func(*url.URL) { cancel() }}, Timeout: time.Minute})
	req, err := http.NewRequest(http.MethodPost, s.url(), nil)
	require.NoError(t, err)
	detail, _ := remedyOf(t, l.Authorize(ctx, req, &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody}))
	require.Equal(t, "nobody has logged in in time", detail)
}

func TestAnswerToARegistrationIsNotQuoted(t *testing.T) {
	s := newScripted(t)
	s.registration = `{"client_id": 1, "client_secret": "hush"}`
	l := s.login(t, Options{Asking: Waiting, Timeout: time.Minute})
	detail, _ := remedyOf(t, s.refuse(t, l, http.StatusUnauthorized, ""))
	require.Contains(t, detail, "registration response")
	require.NotContains(t, detail, "hush")
}

// A browser would hand other addresses to any program of the machine.
func TestAddressThatIsNoWebPageIsNotOpened(t *testing.T) {
	s := newScripted(t)
	s.authorization = "calculator://localhost/authorize"
	person := &screen{}
	l := s.login(t, Options{Asking: Waiting, Err: person, Timeout: 5 * time.Second})
	detail, _ := remedyOf(t, s.refuse(t, l, http.StatusUnauthorized, ""))
	require.Contains(t, detail, "no web page")
	require.NotContains(t, person.String(), "calculator")
}

func TestBrowserIsOpenedOnceByOneOfTheProcesses(t *testing.T) {
	s := newScripted(t)
	addresses, done := make(chan *url.URL, 10), make(chan struct{}, 10)
	var logins []*Login
	for range 3 {
		logins = append(logins, s.login(t, Options{
			Asking: Once, Timeout: time.Minute, Remedy: "use the browser",
			Err:  &screen{open: func(address *url.URL) { addresses <- address }},
			Done: func() { done <- struct{}{} },
		}))
	}
	for range 3 {
		for _, l := range logins {
			_, remedy := remedyOf(t, s.refuse(t, l, http.StatusUnauthorized, ""))
			require.Equal(t, "use the browser", remedy)
		}
	}
	require.Contains(t, back(t, <-addresses, url.Values{"code": {"the-code"}}), "You are logged in")
	for range logins {
		<-done
	}
	require.Empty(t, addresses)
	for _, l := range logins {
		token, err := l.Token()
		require.NoError(t, err)
		require.Equal(t, "access-1", token.AccessToken)
	}

	s.answer = func(w http.ResponseWriter, _ url.Values) { reply(w, 400, map[string]any{"error": "invalid_grant"}) }
	remedyOf(t, s.refuse(t, logins[0], http.StatusUnauthorized, "access-1"))
	require.Contains(t, back(t, <-addresses, url.Values{"error": {"access_denied"}}), "failed")
	remedyOf(t, s.refuse(t, logins[0], http.StatusUnauthorized, ""))
	require.Empty(t, addresses)
}

func TestProcessThatHasWaitedForTheLoginOfAnotherDoesNotAskAgain(t *testing.T) {
	s := newScripted(t)
	synctest.Test(t, func(t *testing.T) {
		unlock, _, err := lock(t.Context(), s.url()) // by another process, where nobody logs in
		require.NoError(t, err)
		person, done := &screen{}, false
		l := s.login(t, Options{Asking: Once, Err: person, Timeout: time.Minute, Done: func() { done = true }})
		remedyOf(t, s.refuse(t, l, http.StatusUnauthorized, ""))
		synctest.Wait()
		unlock()
		time.Sleep(time.Second)
		synctest.Wait()
		require.Empty(t, person.String())
		require.False(t, done)
	})
}

func TestLoginThatIsForgottenDoesNotComeBackByARefresh(t *testing.T) {
	s := newScripted(t)
	s.keep(t, "token", future)
	synctest.Test(t, func(t *testing.T) {
		folder, err := folderOf()
		require.NoError(t, err)
		claim, err := folder.Claim(t.Context(), s.url()) // by another process
		require.NoError(t, err)
		kept, err := claim.Load(t.Context())
		require.NoError(t, err)
		go func() {
			if found, err := Forget(s.url()); err != nil || !found {
				t.Error(found, err)
			}
		}()
		synctest.Wait()
		require.NoError(t, claim.Save(t.Context(), kept))
		claim.Release()
		time.Sleep(time.Second)
		synctest.Wait()
		require.False(t, s.isKept())
	})
}

func TestFilesOfALoginArePrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the folder of the user is private there")
	}
	s := newScripted(t)
	s.keep(t, "token", future)
	folder, err := os.UserConfigDir()
	require.NoError(t, err)
	var modes []string
	require.NoError(t, filepath.Walk(filepath.Join(folder, "mcpactor"), func(_ string, info os.FileInfo, err error) error {
		modes = append(modes, info.Mode().String())
		return err
	}))
	require.Equal(t, []string{"drwx------", "drwx------", "-rw-------", "-rw-------"}, modes) // the login, and its lock
}

func TestFileThatIsNoLoginIsAnErrorThatDoesNotQuoteIt(t *testing.T) {
	for _, text := range []string{"hush", `{"Token": {"access_token": "hush"}}`, `{"Client": "hush"}`} {
		s := newScripted(t)
		s.keep(t, "token", future)
		require.NoError(t, os.WriteFile(s.path(t), []byte(text), 0o600))
		l := s.login(t, Options{})
		_, err := l.Token()
		require.ErrorContains(t, err, "the login that is kept cannot be read")
		require.NotContains(t, err.Error(), "hush")
		require.False(t, s.isKept())
	}
}

func TestServersWithOtherCredentialsHaveNoLogin(t *testing.T) {
	s := newScripted(t)
	s.keep(t, "token", future)
	servers := func() []mcpbridge.Server {
		return []mcpbridge.Server{
			{Name: "plain", URL: "https://a.example/mcp"},
			{Name: "here", URL: "http://127.0.0.1:1/mcp"},
			{Name: "kept", URL: s.url(), Headers: map[string]string{"X-Team": "blue"}},
			{Name: "headers", URL: "https://a.example/mcp", Headers: map[string]string{"X-Key": "secret"}},
			{Name: "authorization", URL: s.url(), Headers: map[string]string{"authorization": "Bearer secret"}},
			{Name: "user", URL: "https://user:secret@a.example/mcp"},
			{Name: "exposed", URL: "http://a.example/mcp"},
			{Name: "command", Command: "true"},
			{Name: "auth", URL: "https://a.example/mcp", Auth: mcpbridge.OAuth(s.login(t, Options{}))},
		}
	}
	logins := Logins{Options: func(server string) Options { return Options{Remedy: "log in to " + server} }}
	first, second := servers(), servers()
	before := servers()[8].Auth
	first[8].Auth, second[8].Auth = before, before
	logins.Attach(first)
	logins.Attach(second)
	var with []string
	for i := range first {
		if first[i].Auth != nil && first[i].Auth != before {
			with = append(with, first[i].Name)
		}
		require.NoError(t, first[i].Validate())
		require.True(t, first[i].Same(&second[i]), first[i].Name)
	}
	require.Equal(t, "plain here kept", strings.Join(with, " "))
}
