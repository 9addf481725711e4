package outbound

import (
	"context"
	"crypto"
	"net/http"
	"strings"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/internal/proof"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// credentials are the headers with the credentials of a request, and the key that the token in them is bound to, or nil.
type credentials struct {
	headers http.Header
	key     crypto.Signer
}

func credentialsOf(ctx context.Context, from mcpbridge.Credentials) (c credentials, err error) {
	if bound, is := from.(mcpbridge.BoundCredentials); is {
		c.headers, c.key, err = bound.BoundHeaders(ctx)
	} else {
		c.headers, err = from.Headers(ctx)
	}
	return c, err
}

// proofs sends requests with the credentials that they get. If the token in these is bound to a key, each request carries a proof
// (DPoP, RFC 9449). The SDK does not have that (go-sdk#1139).
type proofs struct {
	server *proof.Server
	next   interface {
		transmit(req *http.Request, credentials http.Header) (*http.Response, error)
		Secrets() []string
	}
}

// send sends a request. If the server refuses its proof, and has said what another one needs, the request is sent once more.
func (p proofs) send(req *http.Request, c credentials) (*http.Response, error) {
	token, isBound := strings.CutPrefix(c.headers.Get("Authorization"), "DPoP ")
	if c.key == nil || !isBound {
		return p.next.transmit(req, c.headers)
	}
	used := p.server.State()
	resp, now, err := p.prove(req, c, token, used)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || now == used || !proof.Refuses(resp.Header) {
		return resp, err
	}
	again := Again(req)
	if again == nil {
		return resp, nil
	}
	repeats(req)
	ReadRefusal(resp)
	resp, _, err = p.prove(again, c, token, now)
	return resp, err
}

// prove sends a request with a proof, and returns what the next one is made of.
func (p proofs) prove(req *http.Request, c credentials, token string, at proof.State) (*http.Response, proof.State, error) {
	proven, err := guard.Call(func() (*http.Request, error) { return proof.Prove(req, c.key, token, at) })
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, at, wire.Unauthorized("no proof of the key of the token: ", err, p.next.Secrets())
	}
	resp, err := p.next.transmit(proven, c.headers)
	if err != nil {
		return nil, at, err
	}
	return resp, p.server.Note(resp.Header), nil
}
