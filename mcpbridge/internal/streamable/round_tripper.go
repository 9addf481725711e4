package streamable

import (
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/mcpactor/mcpactor/internal/tasks"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// roundTripper is the http.RoundTripper of the SDK for one connection. It notes in the
// [wire.Exchange] of each operation what happened to its requests. In place of a refusal it gives the
// SDK an answer that fails one call and no other. See design.go of package bridge.
type roundTripper struct {
	standalone
	poster outbound.Poster
}

// RoundTrip sends a request of the SDK, and returns the answer, or one that replaces it.
func (rt *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if isStandalone(req) {
		rt.noteRequest(req)
		return rt.open(req), nil // the stream ends by itself when the session is cut
	}
	return outbound.UntilCut(rt.Cut, req, rt.roundTrip)
}

func (rt *roundTripper) roundTrip(req *http.Request) (*http.Response, error) {
	rt.noteRequest(req)
	switch req.Method {
	case http.MethodDelete:
		return outbound.Respond(req, http.StatusOK, "", nil), nil // EndSession sends its own
	case http.MethodGet:
		return rt.resumeAnswer(req)
	}
	return rt.post(req)
}

// post sends a message of the SDK.
func (rt *roundTripper) post(req *http.Request) (*http.Response, error) {
	m := outbound.Message{Exchange: wire.ExchangeOf(req.Context())}
	m.Envelope, m.Request = rt.answers.IDs.Renumber(req, m.Exchange.Params())
	nameRequest(m)
	if resp := rt.attach(m); resp != nil {
		return resp, nil
	}
	return rt.poster.Post(m)
}

// nameRequest adds the header with what a request of protocol 2026-07-28 is about, if the SDK has not: it knows no tasks, and cannot
// decode all parameters that a caller may add, such as the answers of a later round.
func nameRequest(m outbound.Message) {
	member := namedBy[m.Method]
	if member == "" || m.Request.Header.Get("Mcp-Method") == "" || m.Request.Header.Get("Mcp-Name") != "" {
		return
	}
	var request struct {
		Params map[string]json.RawMessage `json:"params"`
	}
	var name string
	if json.Unmarshal(rpc.BodyOf(m.Request), &request) == nil && json.Unmarshal(request.Params[member], &name) == nil {
		m.Request.Header.Set("Mcp-Name", headerValue(name))
	}
}

// namedBy has the parameter that is in that header, by method.
var namedBy = map[string]string{
	rpc.MethodCallTool: "name", "prompts/get": "name", "resources/read": "uri",
	tasks.MethodGet: "taskId", tasks.MethodUpdate: "taskId", tasks.MethodCancel: "taskId",
}

// headerValue returns a value as SEP-2243 wants it in a header.
func headerValue(value string) string {
	for _, c := range []byte(value) {
		if c < '!' || c > '~' {
			return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(value)) + "?="
		}
	}
	return value
}

// deliver sends one message.
func (rt *roundTripper) deliver(m outbound.Message) (*http.Response, error) {
	if m.Exchange.As != "" {
		m.Request.Header.Set(outbound.HeaderSession, m.Exchange.As)
	}
	m.Exchange.Message(m.ID)
	if m.IsCall() {
		m.Exchange.Leaves(func() string {
			sent, _ := rpc.Scan(rpc.BodyOf(m.Request)) // m has the id of the SDK
			return string(sent.ID)
		})
	}
	if m.Method == rpc.MethodListen {
		return rt.subscribe(m), nil
	}
	resp, err := rt.send(m)
	if err != nil {
		return rt.notAnswered(m, err)
	}
	if m.IsHandshake {
		rt.Discovery.Answered()
	}
	if !is2xx(resp) {
		return rt.refused(m, resp)
	}
	return rt.accepted(m, resp), nil
}

func (rt *roundTripper) send(m outbound.Message) (*http.Response, error) {
	if m.Method == rpc.MethodInitialize {
		return rt.initialize(m.Request)
	}
	return rt.out.Send(m.Request)
}

// notAnswered handles an error in place of an answer. An error of the bridge fails only this message.
func (rt *roundTripper) notAnswered(m outbound.Message, err error) (*http.Response, error) {
	ours := outbound.Ours(err, func(resp *http.Response) *mcpbridge.Error {
		e, _ := rt.judge(m.Request, resp, m.ID)
		return e
	})
	if ours == nil {
		return nil, err
	}
	return rt.reject(m, http.StatusInternalServerError, nil, ours), nil
}
