package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/internal/loopback"
	"github.com/mcpactor/mcpactor/internal/visible"
)

// DefaultDocument is the URL of the client ID metadata document of this program, which is docs/client.json.
const DefaultDocument = "https://mcpactor.github.io/mcpactor/client.json"

// maxDocument bounds a client document, in bytes. Authorization servers read less.
const maxDocument = 1 << 16

// documents fetches client documents. No URL but that of the document may have it.
var documents = &http.Client{
	Timeout:       5 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// CheckDocumentURL returns an error unless a URL can be that of a client ID metadata document
// (draft-ietf-oauth-client-id-metadata-document, section 3).
func CheckDocumentURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") == "":
		return errors.New("is not of this form: https://HOST/PATH")
	case u.User != nil || strings.Contains(address, "#") || u.JoinPath().EscapedPath() != u.EscapedPath():
		return errors.New("has a user, a fragment, or a path with dots, which no client document may have")
	}
	return nil
}

// fetchDocument returns the redirect URIs of a client document that are on this machine. The error says why an authorization server
// would not take it.
func fetchDocument(ctx context.Context, address string) ([]*url.URL, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := documents.Do(req)
	if err != nil {
		return nil, errors.Unwrap(err) // which does not name the address again
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it is answered with %s", visible.Detail(resp.Status))
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		return nil, fmt.Errorf("its content type is %q, and not application/json", visible.Detail(kind))
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return nil, err
	}
	return checkDocument(address, data)
}

// checkDocument returns the redirect URIs of a client document that are on this machine.
func checkDocument(address string, data []byte) (redirects []*url.URL, err error) {
	var d struct {
		ClientID      string   `json:"client_id"`
		ClientName    string   `json:"client_name"`
		RedirectURIs  []string `json:"redirect_uris"`
		GrantTypes    []string `json:"grant_types"`
		ResponseTypes []string `json:"response_types"`
		AuthMethod    string   `json:"token_endpoint_auth_method"`
		Secret        any      `json:"client_secret"`
	}
	if len(data) > maxDocument {
		return nil, fmt.Errorf("it has more than %d bytes", maxDocument)
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("it is no client document: %w", err)
	}
	for _, redirect := range d.RedirectURIs {
		if u, err := url.Parse(redirect); err == nil && u.Scheme == "http" && u.Path != "" && loopback.Is(u.Hostname()) {
			redirects = append(redirects, u)
		}
	}
	switch {
	case d.ClientID != address:
		return nil, fmt.Errorf("its client_id is %q, and not its URL", visible.Detail(d.ClientID))
	case d.ClientName == "":
		return nil, errors.New("it has no client_name")
	case d.AuthMethod != "none" || d.Secret != nil:
		return nil, errors.New("it is that of a client with a secret: its token_endpoint_auth_method has to be none")
	case d.GrantTypes != nil && !slices.Contains(d.GrantTypes, "authorization_code"):
		return nil, errors.New("its grant_types lack authorization_code")
	case d.ResponseTypes != nil && !slices.Contains(d.ResponseTypes, "code"):
		return nil, errors.New("its response_types lack code")
	case len(redirects) == 0:
		return nil, errors.New("its redirect_uris have none like http://127.0.0.1/callback")
	}
	return redirects, nil
}

// only returns the redirect URI that the user wants, if one of a client document permits it: an authorization server ignores the port
// of a redirect URI on this machine (RFC 8252, section 7.3), but some compare one that is there.
func only(redirects []*url.URL, wanted string) ([]*url.URL, error) {
	w, err := url.Parse(wanted)
	if err != nil {
		return nil, err
	}
	for _, r := range redirects {
		if r.Hostname() == w.Hostname() && r.Path == w.Path && (r.Port() == "" || r.Port() == w.Port()) {
			return []*url.URL{w}, nil
		}
	}
	return nil, fmt.Errorf("its redirect_uris lack %s", visible.Detail(wanted))
}

// listenAt listens at the first of some redirect URIs whose port is free. One without a port, where any is free, comes after the others.
func listenAt(redirects []*url.URL) (l net.Listener, redirect *url.URL, err error) {
	for _, hasPort := range []bool{true, false} {
		for _, r := range redirects {
			if (r.Port() != "") == hasPort {
				if l, redirect, err = listen(r); err == nil {
					return l, redirect, nil
				}
			}
		}
	}
	return nil, nil, err
}

// listen listens at a redirect URI, and returns it with the port. Without one, or with port 0, it is a free one.
func listen(redirect *url.URL) (net.Listener, *url.URL, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(redirect.Hostname(), redirect.Port()))
	if err != nil {
		return nil, nil, err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	u := *redirect
	u.Host = net.JoinHostPort(u.Hostname(), port)
	return l, &u, nil
}
