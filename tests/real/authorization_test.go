//go:build real

package real

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"
)

// provider says how servers/authorization.mjs is.
type provider struct {
	Issuer        string            `json:"issuer"`
	Audience      string            `json:"audience"`      // the resource that access tokens are for
	AccessSeconds int               `json:"accessSeconds"` // for which access tokens last
	Ahead         int               `json:"ahead"`         // seconds by which its clock is ahead
	Documents     bool              `json:"documents"`     // it takes the metadata documents of clients
	Closed        bool              `json:"closed"`        // clients cannot register themselves
	Unbound       bool              `json:"unbound"`       // it binds no tokens to keys
	Nonces        bool              `json:"nonces"`        // proofs of possession need its nonce
	Clients       []map[string]any  `json:"clients"`
	Trusted       []string          `json:"trusted"` // the issuers whose JWTs count as grants; their keys are at /jwks
	Names         map[string]string `json:"names"`   // of clients at another server, for the ID-JAGs that it issues
}

// authority is an authorization server that runs, behind a front that sees all requests.
type authority struct {
	*httptest.Server
	passed http.Handler // what asks the authorization server itself

	mu    sync.Mutex
	said  bytes.Buffer                                                  // all requests as they were
	forms []url.Values                                                  // what was asked of the token endpoint
	gave  int                                                           // how often the token endpoint has given a token
	token func(w http.ResponseWriter, r *http.Request, form url.Values) // answers these in place of passed; may be nil
}

// newAuthority starts an authorization server. Its issuer is the URL of its front.
func (h *harness) newAuthority(p provider) *authority {
	h.t.Helper()
	a := &authority{}
	transport := &http.Transport{}
	a.Server = httptest.NewServer(a)
	h.atEnd(func() { // after what uses it
		a.CloseClientConnections()
		a.Close()
		transport.CloseIdleConnections()
	})
	p.Issuer = a.URL
	options, err := json.Marshal(p)
	require.NoError(h.t, err)
	script, err := filepath.Abs("servers/authorization.mjs")
	require.NoError(h.t, err)
	at, err := url.Parse(h.startRemote([]string{script}, map[string]string{"OPTIONS": string(options)}))
	require.NoError(h.t, err)
	a.passed = &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(at)
			r.Out.Host = r.In.Host
		},
		ModifyResponse: func(resp *http.Response) error {
			if resp.Request.URL.Path == "/token" && resp.StatusCode == http.StatusOK {
				a.mu.Lock()
				defer a.mu.Unlock()
				a.gave++
			}
			return nil
		},
	}
	return a
}

func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	said, err := httputil.DumpRequest(r, true)
	if err != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
	a.mu.Lock()
	a.said.Write(said)
	token := a.token
	_, body, _ := bytes.Cut(said, []byte("\r\n\r\n"))
	form, _ := url.ParseQuery(string(body))
	if r.URL.Path == "/token" {
		a.forms = append(a.forms, form)
	}
	a.mu.Unlock()
	if token != nil && r.URL.Path == "/token" {
		token(w, r, form)
		return
	}
	a.passed.ServeHTTP(w, r)
}

// answer has a function answer what is asked of the token endpoint from now on; nil is the authorization server itself.
func (a *authority) answer(token func(w http.ResponseWriter, r *http.Request, form url.Values)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token = token
}

// asked returns how often the token endpoint was asked for a grant.
func (a *authority) asked(grant string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, form := range a.forms {
		if form.Get("grant_type") == grant {
			n++
		}
	}
	return n
}

// given returns how often the token endpoint has given a token.
func (a *authority) given() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gave
}

// heard reports whether a text was in a request.
func (a *authority) heard(text string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Contains(a.said.String(), text)
}

// post sends a form.
func (a *authority) post(ctx context.Context, path string, form url.Values) (map[string]any, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := a.Client().Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return answer, nil
}
