package proof

import (
	"bytes"
	"cmp"
	"crypto"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// maxRefusal bounds how much of a refusal is read, in bytes.
const maxRefusal = 64 << 10

// Transport sends the requests of a login to authorization servers. A POST carries a proof if that is asked for. Its methods may be
// called from any goroutine.
type Transport struct {
	Base http.RoundTripper // nil is [http.DefaultTransport]
	// Key signs the proofs. Without it there are none.
	Key crypto.Signer
	// Asked says that each POST carries a proof, because the MCP server asks for that. Otherwise POSTs carry one after an authorization
	// server has asked for it.
	Asked bool
	// Renew changes the form of a request that is sent once more, if it has a part that may be sent only once, such as an assertion
	// of the client. It may be nil.
	Renew func(form url.Values) error

	mu      sync.Mutex
	asked   bool               // a server has asked
	servers map[string]*Server // by origin
}

// Server returns what the server of a URL has said.
func (t *Transport) Server(at string) *Server {
	origin := ""
	if u, err := url.Parse(at); err == nil {
		origin = target(&url.URL{Scheme: u.Scheme, Host: u.Host})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.servers[origin] == nil {
		if t.servers == nil {
			t.servers = map[string]*Server{}
		}
		t.servers[origin] = new(Server)
	}
	return t.servers[origin]
}

// RoundTrip sends a request. If the server asks for a proof or for another one, the request is sent once more.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	server := t.Server(req.URL.String())
	may := req.Method == http.MethodPost && t.Key != nil
	proves, used := may && t.proves(), server.State()
	resp, err := t.send(req, proves, used)
	if err != nil {
		return nil, err
	}
	now := server.Note(resp.Header)
	if !may || proves && now == used || !refusesProof(resp) {
		return resp, nil
	}
	t.mu.Lock()
	t.asked = true
	t.mu.Unlock()
	again, err := t.again(req)
	if again == nil {
		return resp, nil
	}
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	if resp, err = t.send(again, true, now); err == nil {
		server.Note(resp.Header)
	}
	return resp, err
}

func (t *Transport) proves() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Asked || t.asked
}

func (t *Transport) send(req *http.Request, proves bool, at State) (*http.Response, error) {
	if proves {
		proven, err := Prove(req, t.Key, "", at)
		if err != nil {
			if req.Body != nil {
				req.Body.Close()
			}
			return nil, err
		}
		req = proven
	}
	return cmp.Or(t.Base, http.DefaultTransport).RoundTrip(req)
}

// again returns a request to be sent once more, or nil if its body cannot be read again.
func (t *Transport) again(req *http.Request) (*http.Request, error) {
	if req.GetBody == nil {
		return nil, nil
	}
	body, err := req.GetBody()
	again := *req
	again.Body = body
	if err != nil || t.Renew == nil {
		return &again, err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	form, wrong := url.ParseQuery(string(text))
	if err = errors.Join(err, wrong); err == nil {
		err = t.Renew(form)
	}
	renewed := form.Encode()
	again.Body, again.GetBody, again.ContentLength = io.NopCloser(strings.NewReader(renewed)), nil, int64(len(renewed))
	return &again, err
}

// refusesProof reports whether an authorization server asks for a proof or another one (RFC 9449, sections 5 and 8). The body of
// the response stays readable.
func refusesProof(resp *http.Response) bool {
	if resp.StatusCode != http.StatusBadRequest && resp.StatusCode != http.StatusUnauthorized {
		return false
	}
	body := resp.Body
	read, _ := io.ReadAll(io.LimitReader(body, maxRefusal)) // who reads on gets the error, too
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(read), body), body}
	var refusal struct {
		Error string `json:"error"`
	}
	return json.Unmarshal(read, &refusal) == nil && isOfProof(refusal.Error)
}

func isOfProof(code string) bool { return code == "use_dpop_nonce" || code == "invalid_dpop_proof" }

// Refuses reports whether the header of a refusal of an MCP server is about the proof of the request (RFC 9449, sections 7.1 and 9).
func Refuses(h http.Header) bool {
	return slices.ContainsFunc(challenges(h), func(c oauthex.Challenge) bool { return c.Scheme == "dpop" && isOfProof(c.Params["error"]) })
}

// Asks reports whether the header of a refusal of an MCP server asks for tokens that are bound to a key, and takes no others.
func Asks(h http.Header) bool {
	asked := map[string]bool{}
	for _, c := range challenges(h) {
		asked[c.Scheme] = true
	}
	return asked["dpop"] && !asked["bearer"]
}

func challenges(h http.Header) (all []oauthex.Challenge) {
	for _, value := range h.Values("WWW-Authenticate") {
		parsed, _ := oauthex.ParseWWWAuthenticate([]string{value}) // what is malformed says nothing
		all = append(all, parsed...)
	}
	return all
}
