package browser

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDocumentOfThisProgramIsAsItShouldBe(t *testing.T) {
	require.NoError(t, CheckDocumentURL(DefaultDocument))
	data, err := os.ReadFile("../../../../docs/client.json")
	require.NoError(t, err)
	redirects, err := checkDocument(DefaultDocument, data)
	require.NoError(t, err)
	require.Len(t, redirects, 3, "all lead to this machine")
	var d map[string]any
	require.NoError(t, json.Unmarshal(data, &d))
	require.Equal(t, "native", d["application_type"])
	require.Contains(t, d["grant_types"], "refresh_token")
	require.LessOrEqual(t, len(data), 5<<10, "authorization servers need not read more")
}

func TestURLsOfClientDocuments(t *testing.T) {
	for address, good := range map[string]bool{
		"https://a.example/client.json": true, "https://a.example:8443/a/b?x=1": true,
		"": false, "client.json": false, "http://a.example/client.json": false, "https://a.example": false, "https://a.example/": false,
		"https://me@a.example/client.json": false, "https://a.example/client.json#top": false, "https://a.example/a/../client.json": false, "https://%zz": false,
	} {
		require.Equal(t, good, CheckDocumentURL(address) == nil, address)
	}
}

// library serves a client document over https.
type library struct {
	url    string
	fields map[string]any
	answer http.HandlerFunc // in place of the document, or nil
	asked  int
}

// newLibrary starts the server of a document that is as it should be.
func newLibrary(t *testing.T) *library {
	t.Helper()
	l := &library{}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.asked++
		if l.answer != nil {
			l.answer(w, r)
			return
		}
		reply(w, 200, l.fields)
	}))
	before := documents.Transport
	documents.Transport = s.Client().Transport
	t.Cleanup(func() {
		documents.Transport = before
		s.Close()
	})
	l.url = s.URL + "/client.json"
	l.fields = map[string]any{
		"client_id": l.url, "client_name": "test", "token_endpoint_auth_method": "none",
		"redirect_uris": []string{"https://a.example/callback", "http://127.0.0.1/there"},
	}
	return l
}

func TestDefectsOfAClientDocument(t *testing.T) {
	for want, change := range map[string]func(*library){
		"":                             func(*library) {},
		`its client_id is "https://b"`: func(l *library) { l.fields["client_id"] = "https://b" },
		`its client_id is "`:           func(l *library) { l.fields["client_id"] = l.url + "/" },
		"it has no client_name":        func(l *library) { delete(l.fields, "client_name") },
		"token_endpoint_auth_method":   func(l *library) { delete(l.fields, "token_endpoint_auth_method") },
		"of a client with a secret":    func(l *library) { l.fields["client_secret"] = "hush" },
		"lack authorization_code":      func(l *library) { l.fields["grant_types"] = []string{"client_credentials"} },
		"lack code":                    func(l *library) { l.fields["response_types"] = []string{"token"} },
		"its redirect_uris have none": func(l *library) {
			l.fields["redirect_uris"] = []string{"https://127.0.0.1/a", "http://b.example/a", "http://127.0.0.1"}
		},
		"it is no client document: ": func(l *library) { l.fields["redirect_uris"] = "http://127.0.0.1/a" },
		"more than 65536 bytes":      func(l *library) { l.fields["x"] = strings.Repeat("x", maxDocument) },
		"404 Not Found":              func(l *library) { l.answer = http.NotFound },
		"302 Found":                  func(l *library) { l.answer = http.RedirectHandler(l.url, http.StatusFound).ServeHTTP },
		`its content type is "text/html"`: func(l *library) {
			l.answer = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
			}
		},
		"connection refused": func(l *library) {
			gone, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			l.url = "https://" + gone.Addr().String() + "/client.json"
			require.NoError(t, gone.Close())
		},
	} {
		t.Run(want, func(t *testing.T) {
			l := newLibrary(t)
			change(l)
			redirects, err := fetchDocument(t.Context(), l.url)
			if want == "" {
				require.NoError(t, err)
				require.Len(t, redirects, 1)
				require.Equal(t, "http://127.0.0.1/there", redirects[0].String())
				return
			}
			require.ErrorContains(t, err, want)
			require.NotContains(t, err.Error(), "hush")
			require.NotContains(t, err.Error(), "\n")
			require.LessOrEqual(t, l.asked, 1)
		})
	}
}

func parsed(t *testing.T, addresses ...string) (all []*url.URL) {
	t.Helper()
	for _, address := range addresses {
		u, err := url.Parse(address)
		require.NoError(t, err)
		all = append(all, u)
	}
	return all
}

func TestRedirectURIWithAFreePortIsPreferred(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	fixed := other.Addr().String()
	redirects := parsed(t, "http://127.0.0.1/any", "http://"+fixed+"/fixed")

	l, redirect, err := listenAt(redirects)
	require.NoError(t, err)
	require.Equal(t, "http://"+l.Addr().String()+"/any", redirect.String(), "the port is not free")
	require.NoError(t, l.Close())
	_, _, err = listenAt(redirects[1:])
	require.ErrorContains(t, err, "address already in use")

	require.NoError(t, other.Close())
	l, redirect, err = listenAt(redirects)
	require.NoError(t, err)
	require.Equal(t, redirects[1], redirect)
	require.NoError(t, l.Close())
}

func TestRedirectURIOfTheUserIsOneThatTheDocumentPermits(t *testing.T) {
	redirects := parsed(t, "http://127.0.0.1:1/fixed", "http://localhost/any")
	for wanted, good := range map[string]bool{
		"http://127.0.0.1:1/fixed": true, "http://127.0.0.1:2/fixed": false, "http://localhost:2/any": true, "http://127.0.0.1:2/any": false, "http://localhost:2/": false, "http://%zz": false,
	} {
		found, err := only(redirects, wanted)
		if !good {
			require.Error(t, err, wanted)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, parsed(t, wanted), found)
	}
}
